"""Twins: the same node on grown inputs, beside the node that it is a twin of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from anyshape.freeing.growth import grown
from anyshape.freeing.growth_formulas import Wants
from anyshape.freeing.walk import Walk
from anyshape.sizes.expressions import Shape, Size

Pushed = ir.Value | None
"""The grown output of a twin; None where the node is not understood."""
PushBack = Callable[[Walk, ir.Node, Wants], Pushed]


def again(walk: Walk, node: ir.Node, inputs: Sequence[ir.Value | None], shape: Shape) -> ir.Value:
    """The same node on other inputs."""
    twin = ir.node(node.op_type, list(inputs), attributes=dict(node.attributes), domain=node.domain)
    return walk.builder.insert(twin, shape, node.outputs[0].dtype)


def input_grown(walk: Walk, node: ir.Node, wants: Wants, place: int = 0) -> ir.Value:
    value = node.inputs[place]
    assert value is not None
    return grown(walk, node, value, wants, broadcasts=True)


def after(walk: Walk, node: ir.Node, new: ir.Value, wants: Wants, inner: Wants) -> Shape:
    """The node's shape, with what became of the input's grown axes; `wants` and `inner` list them in the same order."""
    shape, sizes = list(walk.shape(node.outputs[0]) or ()), walk.shape(new) or ()
    for axis, source in zip(wants, inner, strict=True):
        shape[axis] = sizes[source]
    return tuple(shape)


def moved(walk: Walk, node: ir.Node, wants: Wants, source: Callable[[int], int | None]) -> Pushed:
    """For nodes whose output axes are those of their first input, each elsewhere."""
    inner: dict[int, Size] = {}
    for axis, size in wants.items():
        place = source(axis)
        if place is None:
            return None
        inner[place] = size
    new = input_grown(walk, node, inner)
    return again(walk, node, [new, *node.inputs[1:]], after(walk, node, new, wants, inner))
