"""Static exports of one module laid side by side, node by node: what differs is computed from the sizes.

What differs but for constants cannot be lifted. A constant is compared where it is used: two uses that share one at
some sizes need not share it at others.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.onnxfile.graph import graphs_in
from anyshape.sizes.fit import Column


class DifferentError(Exception):
    """The graphs are not the same."""


@dataclass(frozen=True)
class Moved:
    """An input of a node (or an output of a graph, without a node) that is another constant at other sizes."""

    node: ir.Node | None
    place: int
    seen: tuple[Any, ...]
    """Its numbers at each observation."""
    graph: ir.Graph


@dataclass(frozen=True)
class GraphAlignment:
    """What moves between graphs of the same make."""

    moved: list[Moved] = field(default_factory=list)
    sizes: dict[Column, None] = field(default_factory=dict)
    """The sizes of inner values that move, as an ordered set."""
    twins: dict[ir.Value, tuple[ir.Value, ...]] = field(default_factory=dict)
    """A value of the first graph -> itself and its counterparts."""


def align(models: Sequence[ir.Model]) -> GraphAlignment:
    """Compare models whose constants are all initializers; DifferentError where they are not the same but for those."""
    alignment = GraphAlignment()
    _align_graphs(alignment, [model.graph for model in models])
    return alignment


def _align_graphs(alignment: GraphAlignment, graphs: Sequence[ir.Graph]) -> None:
    _refuse_difference([len(graph.inputs) for graph in graphs], "inputs")
    for values in zip(*(graph.inputs for graph in graphs), strict=True):
        _pair_definitions(alignment, values)
    _refuse_difference([len(graph) for graph in graphs], "nodes")
    for nodes in zip(*graphs, strict=True):
        _align_nodes(alignment, nodes, graphs[0])
    _refuse_difference([len(graph.outputs) for graph in graphs], "outputs")
    for place, values in enumerate(zip(*(graph.outputs for graph in graphs), strict=True)):
        _compare_uses(alignment, values, None, place, graphs[0])


def _align_nodes(alignment: GraphAlignment, nodes: Sequence[ir.Node], graph: ir.Graph) -> None:
    first = nodes[0]
    _refuse_difference([node.op_identifier() for node in nodes], "operators")
    for what in ("inputs", "outputs"):
        _refuse_difference([len(getattr(node, what)) for node in nodes], f"{what} of {first.op_type}")
    for place, values in enumerate(zip(*(node.inputs for node in nodes), strict=True)):
        _compare_uses(alignment, values, first, place, graph)
    _compare_attributes(nodes)
    for inner in zip(*(graphs_in(node) for node in nodes), strict=True):
        _align_graphs(alignment, inner)
    for values in zip(*(node.outputs for node in nodes), strict=True):
        _pair_definitions(alignment, values)


def _refuse_difference(things: Sequence[object], what: str) -> None:
    if any(thing != things[0] for thing in things):
        texts = dict.fromkeys(str(thing[1] if isinstance(thing, tuple) else thing) for thing in things)
        raise DifferentError(f"the {what} differ from size to size: {', '.join(texts)}")


def _pair_definitions(alignment: GraphAlignment, values: tuple[ir.Value, ...]) -> None:
    alignment.twins[values[0]] = values
    shapes = [value.shape for value in values]
    if len({len(shape) if shape is not None else None for shape in shapes}) == 1 and shapes[0] is not None:
        for sizes in zip(*(shape for shape in shapes if shape is not None), strict=True):
            if all(isinstance(size, int) for size in sizes) and len(set(sizes)) > 1:
                alignment.sizes[tuple(int(size) for size in sizes)] = None


def _compare_uses(
    alignment: GraphAlignment, values: tuple[ir.Value | None, ...], node: ir.Node | None, place: int, graph: ir.Graph
) -> None:
    known = alignment.twins.get(values[0]) if values[0] is not None else (None,) * len(values)
    if known is not None:
        if known != values:
            raise DifferentError(f"an input of {node.op_type if node else 'the outputs'} comes from another node")
        return
    tensors = [value.const_value for value in values if value is not None and value.const_value is not None]
    if len(tensors) < len(values):
        raise DifferentError("what is computed at some sizes is a constant at others")
    if not all(is_same_tensor(tensors[0], other) for other in tensors[1:]):
        alignment.moved.append(Moved(node, place, tuple(tensor.numpy() for tensor in tensors), graph))


def is_same_tensor(one: ir.TensorProtocol, other: ir.TensorProtocol) -> bool:
    """The very same memory, or the same numbers; weights are not copied for it."""
    if one is other:
        return True
    if one.dtype != other.dtype or tuple(one.shape) != tuple(other.shape):
        return False
    a, b = one.numpy(), other.numpy()
    if a.ctypes.data == b.ctypes.data and a.strides == b.strides:
        return True
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def _compare_attributes(nodes: Sequence[ir.Node]) -> None:
    """All but graphs must be the same."""
    names = dict.fromkeys(name for node in nodes for name in node.attributes)
    for node, name in itertools.product(nodes[1:], names):
        one, other = nodes[0].attributes.get(name), node.attributes.get(name)
        if one is None or other is None or not _is_same_attribute(one, other):
            raise DifferentError(f"`{name}` of {node.op_type} follows the sizes, and is no input")


def _is_same_attribute(one: ir.Attr, other: ir.Attr) -> bool:
    if one.type != other.type or one.is_ref() or other.is_ref():
        return False
    if one.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
        return True  # compared by themselves
    if one.type == ir.AttributeType.TENSOR:
        return is_same_tensor(one.as_tensor(), other.as_tensor())
    if one.type in (ir.AttributeType.FLOAT, ir.AttributeType.FLOATS):
        return bool(np.array_equal(np.asarray(one.value), np.asarray(other.value), equal_nan=True))
    return bool(one.value == other.value)
