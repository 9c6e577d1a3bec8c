"""Loops over a size that varies, kept as loops: the body is traced once, between two marks.

`for` statements and comprehensions of the model's code run through a helper while a trace runs. Where what they go over
has a plain length, nothing is different. Where it has a symbolic one, the body runs a few times off the record, which
tells what one step hands to the next, and once for the trace.

    rewriting   the source, changed in memory; the functions that are alive run the changed code
    liveness    which names of a body matter before and after it
    items       what a loop goes over: numbers, slices of tensors, several of these at once
    places      the places at which something holds, where each needs a step of its own
    collected   a list that holds one value for each step
    carrying    what one step hands to the next
    running     the passes over a body
"""

from __future__ import annotations

from anyshape.conversion.control_flow.collected import LoopError
from anyshape.conversion.control_flow.kept_loops_keeping import kept_loops, rewritten

__all__ = ["LoopError", "kept_loops", "rewritten"]
