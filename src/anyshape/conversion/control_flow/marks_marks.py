"""The marks as this package reads them: nodes of our own domain, and what each of their inputs and outputs is."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from anyshape.errors import AnyshapeError

DOMAIN = "anyshape"
CHOOSE, LOOP_BEGIN, LOOP_END = "Choose", "LoopBegin", "LoopEnd"


class RegionError(AnyshapeError):
    """The marks of a trace do not bound a region that ONNX can express."""


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
    which, *values = _inputs(choice)
    return which, values[: len(choice.outputs)], values[len(choice.outputs) :]


def count_of(mark: ir.Node) -> ir.Value:
    """How many steps a loop takes."""
    return _inputs(mark)[0]


def initial_of(mark: ir.Node) -> list[ir.Value]:
    return _inputs(mark)[1 : 1 + _carried(mark)]


def sequences_of(begin: ir.Node) -> list[ir.Value]:
    return _inputs(begin)[1 + _carried(begin) :]


def growing_of(begin: ir.Node) -> Sequence[int]:
    return begin.attributes["growing"].as_ints()


def results_of(end: ir.Node) -> tuple[list[ir.Value], list[ir.Value]]:
    """What a step hands on to the next one, and what it leaves to be collected."""
    values = _inputs(end)[1 + _carried(end) :]
    return values[: _carried(end)], values[_carried(end) :]


def _carried(mark: ir.Node) -> int:
    return mark.attributes["carried"].as_int()


def _inputs(mark: ir.Node) -> list[ir.Value]:
    return [value for value in mark.inputs if value is not None]
