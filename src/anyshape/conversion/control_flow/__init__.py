"""Branches and loops of the model's Python code, from the code to If, Scan and Loop.

A branch. torch asks `module_paths` whether a size holds; `forks` knows who asks, and answers for the `samples`, sizes
that stand for all declared ones. Where these differ, the module call is run again with the other answer, and the
results of all runs are joined by the operator `choose`, one of the `marks` in the trace.

A loop. `kept_loops` gives the model's functions code that `loop_source` has rewritten: a loop asks what it goes over.
Where that is one of the `items` of symbolic length, `loop_passes` runs the body a few times off the record, by which it
learns what one step hands to the next and how it is laid out as tensors (`carried`, and lists as `collected`), and runs
it once between the marks of `loop_trace`.

In the ONNX graph the marks are nodes of our own domain; `lowering` makes If of the choices, and `scans` makes Scan or
Loop of what stands between the marks of a loop.
"""
