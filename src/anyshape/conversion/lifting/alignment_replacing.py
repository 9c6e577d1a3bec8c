"""The constants that moved, computed in the first of the graphs; the others are needed no longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir
import sympy
from onnx_ir.passes.common import RemoveUnusedNodesPass
from onnxscript import optimizer

from anyshape.conversion.candidates import Job
from anyshape.conversion.lifting.alignment import Alignment, Moved, align, is_same_tensor
from anyshape.conversion.lifting.constants import constant
from anyshape.conversion.lifting.constants_making import Maker, UnexplainedError
from anyshape.conversion.lifting.static_exports import Observation, free_axes
from anyshape.freeing.builder import Builder
from anyshape.sizes.expressions import Size, dim_symbol
from anyshape.sizes.fit_points import Points
from anyshape.sizes.fit_whole_numbers import whole_number

_MOST_DERIVED = 10


@dataclass(frozen=True)
class Lifted:
    """A model for every size, and how many constants became nodes."""

    model: ir.Model
    count: int


def lift(job: Job, observations: Sequence[Observation]) -> Lifted:
    """One model out of all, which is a new one; DifferentError or UnexplainedError where that cannot be."""
    model = observations[0].model.clone()
    alignment = align([model, *(one.model for one in observations[1:])])
    points = _points(alignment, [one.at for one in observations])
    build = Builder(model, _sources(job, model))
    first = next(iter(model.graph), None)
    if first is None:
        raise UnexplainedError("the graph has no nodes")
    build.enter(first)
    maker = Maker(build, points, _tops(job))
    known: dict[tuple[object, ...], ir.Value] = {}
    for moved in alignment.moved:
        key = tuple((str(a.dtype), a.shape, a.tobytes()) for a in moved.seen)
        if key not in known:
            known[key] = _explained(maker, moved)
        _put(moved, known[key])
    _forget_shapes(model)
    _tidy(model)
    return Lifted(model, len(known))


def _tidy(model: ir.Model) -> None:
    """What torch does with every export, left out while constants were to be told apart; some files need it to load."""
    RemoveUnusedNodesPass()(model)
    optimizer.optimize(model)


def _explained(maker: Maker, moved: Moved) -> ir.Value:
    try:
        return constant(maker, moved.seen)
    except UnexplainedError as error:
        of = f"input {moved.place} of {moved.node.op_type}" if moved.node is not None else f"output {moved.place}"
        raise type(error)(f"the constant that is {of} {error}") from None


def _put(moved: Moved, value: ir.Value) -> None:
    if moved.node is None:
        moved.graph.outputs[moved.place] = value
    else:
        moved.node.replace_input_with(moved.place, value)


def _points(alignment: Alignment, at: Sequence[Mapping[Size, int]]) -> Points:
    """With the sizes of inner values that follow one dim: products and further divisions of them occur, too.

    The largest come first, as the levels of a pyramid do: each is a simple part of the one before.
    """
    points = Points(tuple(at), {})
    for numbers in sorted(alignment.sizes, key=sum, reverse=True):
        size = whole_number(numbers, points) if numbers not in points.sizes.values() else None
        if size is not None and _is_simple(size) and len(points.derived) < _MOST_DERIVED:
            points = Points(points.at, {**points.derived, size: numbers})
    return points


def _is_simple(size: Size) -> bool:
    """A rounded division, or a line: what layers make of a size."""
    return len(size.free_symbols) == 1 and (isinstance(size, sympy.floor) or not size.has(sympy.floor))


def _sources(job: Job, model: ir.Model) -> dict[Size, tuple[ir.Value, int]]:
    """Where each size is read; TorchScript leaves out inputs that it does not use, and its names tell which stayed."""
    inputs = dict(enumerate(model.graph.inputs))
    if len(inputs) != len(job.names):
        inputs = {int(str(value.name).removeprefix("input_")): value for value in model.graph.inputs}
    return {symbol: (inputs[index], axis) for symbol, (index, axis) in free_axes(job).items() if index in inputs}


def _tops(job: Job) -> dict[Size, int]:
    ranges = job.spec.ranges.items()
    return {dim_symbol(dim): declared.nearest(2**31) for dim, declared in ranges if not declared.is_open}


def _forget_shapes(model: ir.Model) -> None:
    """They were true for one size only; that of a number, as a loop counts with, is true for all."""
    for graph in model.graphs():
        for value in (*graph.inputs, *(value for node in graph for value in node.outputs)):
            if value.shape is not None and len(value.shape):
                value.shape = None


def share_weights(observations: Sequence[Observation]) -> None:
    """The newest observation takes the tensors of the first where they are the same: weights are held once."""
    first, newest = observations[0].model.graph.initializers, observations[-1].model.graph.initializers
    for name, value in newest.items():
        known = first[name].const_value if name in first else None
        if known is not None and value.const_value is not None and is_same_tensor(known, value.const_value):
            value.const_value = known
