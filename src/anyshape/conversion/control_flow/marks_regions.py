"""The marks of branches and loops, carried over into the ONNX graph as nodes of our own domain.

They live from torch's translation until `conversion.regions` has made If, Scan and Loop of what stands between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from anyshape.conversion.control_flow.marks import record_mark
from anyshape.conversion.operators.onnx_words import op


def choose(which: Any, first: ir.Value, second: ir.Value, group: int) -> ir.Value:
    (chosen,) = record_mark("Choose", [_number(which), first, second], [ir.AttrInt64("group", group)], 1)
    return chosen


def loop_begin(
    count: Any, initial: Sequence[ir.Value], sequences: Sequence[ir.Value], growing: Sequence[int], loop: int
) -> list[ir.Value]:
    attributes = [
        ir.AttrInt64("loop", loop),
        ir.AttrInt64("carried", len(initial)),
        ir.AttrInt64s("growing", growing),
    ]
    return record_mark(
        "LoopBegin", [_number(count), *initial, *sequences], attributes, 1 + len(initial) + len(sequences)
    )


def loop_end(
    count: Any, initial: Sequence[ir.Value], carried: Sequence[ir.Value], collected: Sequence[ir.Value], loop: int
) -> list[ir.Value]:
    attributes = [ir.AttrInt64("loop", loop), ir.AttrInt64("carried", len(carried))]
    inputs = [_number(count), *initial, *carried, *collected]
    return record_mark("LoopEnd", inputs, attributes, len(carried) + len(collected))


def named(tensor: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Names of sizes are for the trace alone."""
    del axes
    identity: ir.Value = op.Identity(tensor)
    return identity


def cut(tensor: ir.Value, axis: int, start: Any, end: Any) -> ir.Value:
    """Torch's and ONNX's slices count negative borders from the end, and end where the axis does."""
    borders = (op.Reshape(_number(border), op.Constant(value_ints=[1])) for border in (start, end))
    part: ir.Value = op.Slice(tensor, *borders, op.Constant(value_ints=[axis]))
    return part


def _number(value: Any) -> Any:
    """A size may be known when the program is traced."""
    return value if isinstance(value, ir.Value) else op.Constant(value_int=int(value))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "anyshape::choose": choose,
    "anyshape::cut": cut,
    "anyshape::named": named,
    "anyshape::loop_begin": loop_begin,
    "anyshape::loop_end": loop_end,
}
