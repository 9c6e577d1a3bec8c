"""Operators that mark a region of a trace: both sides of a branch and where they meet, the body of a loop.

A trace is a straight line. A branch is traced by running both of its sides and choosing between the results; a loop by
running its body once, between two marks. What stands between the marks becomes the body of ONNX's If, Scan or Loop when
the program is translated; nothing here is ever computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import onnxscript.evaluator
import torch

from anyshape.torchkit.capture_expressions import is_same_number
from anyshape.torchkit.custom_operators import register_fake

LIBRARY = torch.library.Library("anyshape", "FRAGMENT")
LIBRARY.define("choose(SymInt which, Tensor first, Tensor second, int group) -> Tensor")
LIBRARY.define("named(Tensor tensor, int[] axes) -> Tensor")
LIBRARY.define("cut(Tensor tensor, int axis, SymInt start, SymInt end) -> Tensor")
LIBRARY.define("loop_begin(SymInt count, Tensor[] initial, Tensor[] sequences, int[] growing, int loop) -> Tensor[]")
LIBRARY.define("loop_end(SymInt count, Tensor[] initial, Tensor[] carried, Tensor[] collected, int loop) -> Tensor[]")


def _choose(which: Any, first: torch.Tensor, second: torch.Tensor, group: int) -> torch.Tensor:
    """`first` where `which` is 1, else `second`; choices of one group are made by one If."""
    del which, group
    context = torch.library.get_ctx()
    pairs = zip(first.shape, second.shape, strict=True)
    return first.new_empty([pair[0] if is_same_number(*pair) else context.new_dynamic_size() for pair in pairs])


def _named(tensor: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    """The same tensor; the sizes of these axes are symbols of their own."""
    context = torch.library.get_ctx()
    return tensor.new_empty([context.new_dynamic_size() if a in axes else size for a, size in enumerate(tensor.shape)])


def _cut(tensor: torch.Tensor, axis: int, start: Any, end: Any) -> torch.Tensor:
    """A slice of which nobody knows the length."""
    del start, end
    length = torch.library.get_ctx().new_dynamic_size()
    return tensor.new_empty([length if a == axis else size for a, size in enumerate(tensor.shape)])


def _loop_begin(
    count: Any, initial: Sequence[torch.Tensor], sequences: Sequence[torch.Tensor], growing: Sequence[int], loop: int
) -> list[torch.Tensor]:
    """What the body sees in some step: its index, what is carried, and the step's slice of each sequence.

    `growing` are pairs: position of a carried tensor, and its axis whose size changes from step to step.
    """
    del count, loop
    context = torch.library.get_ctx()
    axes = set(zip(growing[::2], growing[1::2], strict=True))
    carried = [
        tensor.new_empty(
            [context.new_dynamic_size() if (place, axis) in axes else size for axis, size in enumerate(tensor.shape)]
        )
        for place, tensor in enumerate(initial)
    ]
    index = torch.empty(
        (), dtype=torch.int64, device=(*initial, *sequences)[0].device if (*initial, *sequences) else None
    )
    return [index, *carried, *(tensor.new_empty(tensor.shape[1:]) for tensor in sequences)]


def _loop_end(
    count: Any,
    initial: Sequence[torch.Tensor],
    carried: Sequence[torch.Tensor],
    collected: Sequence[torch.Tensor],
    loop: int,
) -> list[torch.Tensor]:
    """What is carried out of the last step, and what was collected in each, stacked on a new first axis."""
    del loop
    context = torch.library.get_ctx()
    last = []
    for before, after in zip(initial, carried, strict=True):
        sizes = [
            old if is_same_number(old, new) else context.new_dynamic_size()
            for old, new in zip(before.shape, after.shape, strict=True)
        ]
        last.append(after.new_empty(sizes))
    return [*last, *(tensor.new_empty((count, *tensor.shape)) for tensor in collected)]


for _name, _function in (
    ("choose", _choose),
    ("named", _named),
    ("cut", _cut),
    ("loop_begin", _loop_begin),
    ("loop_end", _loop_end),
):
    register_fake(f"anyshape::{_name}", _function, lib=LIBRARY)


def record_mark(
    operator: str, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr], outputs: int
) -> list[ir.Value]:
    """A mark in the ONNX graph that torch's translation is at work on; no runtime knows its domain."""
    node = ir.Node(LIBRARY.ns, operator, inputs, attributes, num_outputs=outputs)
    recorder: Any = onnxscript.evaluator.default()
    recorder.nodes.append(node)
    return list(node.outputs)
