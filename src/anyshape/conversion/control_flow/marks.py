"""Operators that mark a region of a trace: both sides of a branch and where they meet, the body of a loop.

A trace is a straight line. A branch is traced by running both of its sides and choosing between the results; a loop by
running its body once, between two marks. What stands between the marks becomes the body of ONNX's If, Scan or Loop when
the program is translated; nothing here is ever computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import onnx_ir as ir
import onnxscript.evaluator
import torch

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.speed.operator_table import register_fake
from anyshape.errors import AnyshapeError
from anyshape.torchkit.capture import is_same_number

DOMAIN = "anyshape"
"""Of the marks, in torch and in ONNX; no runtime knows it."""
CHOOSE, LOOP_BEGIN, LOOP_END = "Choose", "LoopBegin", "LoopEnd"


class RegionError(AnyshapeError):
    """The marks of a trace do not bound a region that ONNX can express."""


# ---- as operators of torch: each tells the sizes of what it gives

LIBRARY = torch.library.Library(DOMAIN, "FRAGMENT")


def _with_new_sizes(tensor: torch.Tensor, axes: Collection[int]) -> torch.Tensor:
    """Like the tensor, but the sizes of these axes are symbols of their own."""
    context = torch.library.get_ctx()
    return tensor.new_empty([context.new_dynamic_size() if a in axes else size for a, size in enumerate(tensor.shape)])


def _other_axes(left: torch.Tensor, right: torch.Tensor) -> list[int]:
    sizes = zip(left.shape, right.shape, strict=True)
    return [axis for axis, pair in enumerate(sizes) if not is_same_number(*pair)]


def _shape_of_choose(which: Any, first: torch.Tensor, second: torch.Tensor, group: int) -> torch.Tensor:
    """`first` where `which` is 1, else `second`; choices of one group are made by one If."""
    del which, group
    return _with_new_sizes(first, _other_axes(first, second))


def _shape_of_cut(tensor: torch.Tensor, axis: int, start: Any, end: Any) -> torch.Tensor:
    """A slice of which nobody knows the length."""
    del start, end
    return _with_new_sizes(tensor, [axis])


def _shape_of_loop_begin(
    count: Any, initial: Sequence[torch.Tensor], sequences: Sequence[torch.Tensor], growing: Sequence[int], loop: int
) -> list[torch.Tensor]:
    """What the body sees in some step: its index, what is carried, and the step's slice of each sequence.

    `growing` are pairs: position of a carried tensor, and its axis whose size changes from step to step.
    """
    del count, loop
    pairs = list(zip(growing[::2], growing[1::2], strict=True))
    carried = [_with_new_sizes(one, [axis for at, axis in pairs if at == place]) for place, one in enumerate(initial)]
    given = (*initial, *sequences)
    index = torch.empty((), dtype=torch.int64, device=given[0].device if given else None)
    return [index, *carried, *(tensor.new_empty(tensor.shape[1:]) for tensor in sequences)]


ALWAYS = -1


def _shape_of_loop_end(
    count: Any,
    initial: Sequence[torch.Tensor],
    carried: Sequence[torch.Tensor],
    collected: Sequence[torch.Tensor],
    loop: int,
    goes_on: Any = ALWAYS,
) -> list[torch.Tensor]:
    """What is carried out of the last step, and what was collected in each, stacked on a new first axis.

    After a step where `goes_on` is 0 there is no other; ALWAYS for a loop that takes all of its steps.
    """
    del loop
    pairs = list(zip(initial, carried, strict=True))
    last = [after.new_empty(_with_new_sizes(before, _other_axes(before, after)).shape) for before, after in pairs]
    steps = torch.library.get_ctx().new_dynamic_size() if collected and not _is_always(goes_on) else count
    return [*last, *(tensor.new_empty((steps, *tensor.shape)) for tensor in collected)]


def _is_always(goes_on: Any) -> bool:
    return isinstance(goes_on, int) and goes_on == ALWAYS


# ---- as nodes of ONNX, written while torch translates


def _record_mark(
    operator: str, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr], outputs: int
) -> list[ir.Value]:
    """A mark in the ONNX graph that torch's translation is at work on."""
    node = ir.Node(DOMAIN, operator, inputs, attributes, num_outputs=outputs)
    recorder: Any = onnxscript.evaluator.default()
    recorder.nodes.append(node)
    return list(node.outputs)


def _write_choose(which: Any, first: ir.Value, second: ir.Value, group: int) -> ir.Value:
    (chosen,) = _record_mark(CHOOSE, [_as_value(which), first, second], [ir.AttrInt64("group", group)], 1)
    return chosen


def _write_loop_begin(
    count: Any, initial: Sequence[ir.Value], sequences: Sequence[ir.Value], growing: Sequence[int], loop: int
) -> list[ir.Value]:
    attributes = [ir.AttrInt64("loop", loop), ir.AttrInt64("carried", len(initial)), ir.AttrInt64s("growing", growing)]
    inputs = [_as_value(count), *initial, *sequences]
    return _record_mark(LOOP_BEGIN, inputs, attributes, len(inputs))


def _write_loop_end(
    count: Any,
    initial: Sequence[ir.Value],
    carried: Sequence[ir.Value],
    collected: Sequence[ir.Value],
    loop: int,
    goes_on: Any = ALWAYS,
) -> list[ir.Value]:
    attributes = [ir.AttrInt64("loop", loop), ir.AttrInt64("carried", len(carried))]
    condition = [] if _is_always(goes_on) else [_as_value(goes_on)]
    inputs = [_as_value(count), *initial, *carried, *collected, *condition]
    return _record_mark(LOOP_END, inputs, attributes, len(carried) + len(collected))


def _write_named(tensor: ir.Value, axes: Sequence[int]) -> Any:
    """Names of sizes are for the trace alone."""
    del axes
    return op.Identity(tensor)


def _write_cut(tensor: ir.Value, axis: int, start: Any, end: Any) -> Any:
    """Torch's and ONNX's slices count negative borders from the end, and end where the axis does."""
    borders = (op.Reshape(_as_value(border), op.Constant(value_ints=[1])) for border in (start, end))
    return op.Slice(tensor, *borders, op.Constant(value_ints=[axis]))


def _as_value(value: Any) -> Any:
    """A size may be known when the program is traced."""
    return value if isinstance(value, ir.Value) else op.Constant(value_int=int(value))


# ---- in both tables

_LISTS = "SymInt count, Tensor[] initial, Tensor[]"
_OPERATORS: tuple[tuple[str, Callable[..., Any], Callable[..., Any]], ...] = (
    ("choose(SymInt which, Tensor first, Tensor second, int group) -> Tensor", _shape_of_choose, _write_choose),
    ("named(Tensor tensor, int[] axes) -> Tensor", _with_new_sizes, _write_named),
    ("cut(Tensor tensor, int axis, SymInt start, SymInt end) -> Tensor", _shape_of_cut, _write_cut),
    (f"loop_begin({_LISTS} sequences, int[] growing, int loop) -> Tensor[]", _shape_of_loop_begin, _write_loop_begin),
    (
        f"loop_end({_LISTS} carried, Tensor[] collected, int loop, SymInt goes_on={ALWAYS}) -> Tensor[]",
        _shape_of_loop_end,
        _write_loop_end,
    ),
)
TRANSLATIONS: dict[str, Callable[..., Any]] = {}
for _schema, _shape, _translation in _OPERATORS:
    LIBRARY.define(_schema)
    _operator = f"{DOMAIN}::{_schema.partition('(')[0]}"
    register_fake(_operator, _shape, lib=LIBRARY)
    TRANSLATIONS[_operator] = _translation


# ---- as nodes of ONNX, read back: what each of their inputs and outputs is


def is_mark(node: ir.Node, *operators: str) -> bool:
    return node.domain == DOMAIN and (not operators or node.op_type in operators)


def marks_of(graph: ir.Graph, operator: str) -> list[ir.Node]:
    """The marks of one kind in a graph, without those in the graphs inside it."""
    return [node for node in graph if is_mark(node, operator)]


def group_of(choice: ir.Node) -> int:
    return choice.attributes["group"].as_int()


def loop_of(mark: ir.Node) -> int:
    return mark.attributes["loop"].as_int()


def sides(choice: ir.Node) -> tuple[ir.Value, list[ir.Value], list[ir.Value]]:
    """What decides, and the first and the second of each pair that is chosen from."""
    which, *values = _given_inputs(choice)
    return which, values[: len(choice.outputs)], values[len(choice.outputs) :]


def count_of(mark: ir.Node) -> ir.Value:
    """How many steps a loop takes."""
    return _given_inputs(mark)[0]


def initial_of(mark: ir.Node) -> list[ir.Value]:
    return _given_inputs(mark)[1 : 1 + _count_carried(mark)]


def sequences_of(begin: ir.Node) -> list[ir.Value]:
    return _given_inputs(begin)[1 + _count_carried(begin) :]


def growing_of(begin: ir.Node) -> Sequence[int]:
    return begin.attributes["growing"].as_ints()


def results_of(end: ir.Node) -> tuple[list[ir.Value], list[ir.Value]]:
    """What a step hands on to the next one, and what it leaves to be collected."""
    values = _given_inputs(end)[1 + _count_carried(end) :]
    return values[: _count_carried(end)], values[_count_carried(end) : len(end.outputs)]


def goes_on_of(end: ir.Node) -> ir.Value | None:
    """What says after a step whether there is another; None for a loop that takes all of its steps."""
    values = _given_inputs(end)[1 + _count_carried(end) :]
    return values[-1] if len(values) > len(end.outputs) else None


def _count_carried(mark: ir.Node) -> int:
    return mark.attributes["carried"].as_int()


def _given_inputs(mark: ir.Node) -> list[ir.Value]:
    return [value for value in mark.inputs if value is not None]
