"""What depends on what in a graph whose nodes may hold graphs of their own, and small changes to such a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import onnx_ir as ir


def graphs_in(node: ir.Node) -> list[ir.Graph]:
    """The bodies of a node: branches of an If, the step of a Scan or Loop."""
    found: list[ir.Graph] = []
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            found.append(attribute.as_graph())
        elif attribute.type == ir.AttributeType.GRAPHS:
            found.extend(attribute.as_graphs())
    return found


def reads(node: ir.Node) -> list[ir.Value]:
    """The inputs of a node, and what its bodies capture from around it."""
    return [value for value in node.inputs if value is not None] + [v for g in graphs_in(node) for v in captured(g)]


def captured(graph: ir.Graph | ir.GraphView) -> list[ir.Value]:
    """What a graph uses without defining it, each once."""
    inside = {id(value) for value in (*graph.inputs, *graph.initializers.values())}
    inside.update(id(value) for node in graph for value in node.outputs)
    used = [*(value for node in graph for value in reads(node)), *graph.outputs]
    return list({id(value): value for value in used if value is not None and id(value) not in inside}.values())


class Dependencies:
    """Which nodes of a sorted graph need which. A set of nodes is a number with one bit for each."""

    def __init__(self, graph: ir.Graph) -> None:
        self.nodes = list(graph)
        self.place = {id(node): index for index, node in enumerate(self.nodes)}
        self._reads = [list(self._places(reads(node))) for node in self.nodes]
        self._outputs = [value for value in graph.outputs if value is not None]
        self._above = self.needs(self.reading)

    def needs(self, of: Callable[[ir.Node, Sequence[int]], int]) -> list[int]:
        """Node by node: itself and what `of` says it needs, given what those before it need."""
        found: list[int] = []
        for index, node in enumerate(self.nodes):
            found.append(1 << index | of(node, found))
        return found

    def reading(self, node: ir.Node, above: Sequence[int]) -> int:
        """What a node needs for all that it reads."""
        return reduce(or_, (above[place] for place in self._reads[self.place[id(node)]]), 0)

    def union(self, values: Iterable[ir.Value], above: Sequence[int]) -> int:
        """What any of these values needs."""
        return reduce(or_, (above[place] for place in self._places(values)), 0)

    def of_outputs(self, above: Sequence[int]) -> int:
        return self.union(self._outputs, above)

    def needed(self, node: ir.Node, other: ir.Node) -> bool:
        """Whether `other` needs `node`."""
        return bool(self._above[self.place[id(other)]] >> self.place[id(node)] & 1)

    def between(self, firsts: Sequence[ir.Node], last: ir.Node) -> list[ir.Node]:
        """What needs one of the firsts, or is one, and is needed by the last, without that."""
        before = self.nodes[: self.place[id(last)]]
        return [
            node for node in before if self.needed(node, last) and any(self.needed(first, node) for first in firsts)
        ]

    def leading_to(self, values: Iterable[ir.Value], outside: int) -> list[ir.Node]:
        """The nodes that these values need, short of those in `outside`."""
        found: set[int] = set()
        waiting = list(self._places(values))
        while waiting:
            place = waiting.pop()
            if place not in found and not outside >> place & 1:
                found.add(place)
                waiting.extend(self._reads[place])
        return [self.nodes[place] for place in sorted(found)]

    def _places(self, values: Iterable[ir.Value]) -> Iterator[int]:
        for value in values:
            place = self.place.get(id(value.producer()))
            if place is not None:
                yield place


def new_node(operator: str, inputs: Sequence[ir.Value | None], attributes: Any = None, *, like: ir.Node) -> ir.Node:
    """A node with one output that comes from the same line of the user's as another."""
    node = ir.node(operator, inputs, attributes)
    node.metadata_props.update(like.metadata_props)
    return node


def constant(value: int | Sequence[int], *, like: ir.Node) -> ir.Node:
    node = new_node("Constant", [], {"value": ir.tensor(np.array(value, dtype=np.int64))}, like=like)
    node.outputs[0].dtype = ir.DataType.INT64
    node.outputs[0].shape = ir.Shape(np.shape(value))
    return node


def constant_of(value: ir.Value | None) -> Any:
    """The numbers of a constant as a NumPy array, or None."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def replace(old: ir.Value, new: ir.Value) -> None:
    """Let everyone use another value; an output of the graph keeps its name."""
    if old.is_graph_output():
        new.name, old.name = old.name, None
    old.replace_all_uses_with(new, replace_graph_outputs=True)


def describe(value: ir.Value, like: ir.Value) -> ir.Value:
    """Give a value the type and shape of another."""
    value.type, value.shape = like.type, None if like.shape is None else like.shape.copy()
    return value


def prune(graph: ir.Graph, nodes: Iterable[ir.Node]) -> None:
    """Remove those of some nodes in order that nobody uses."""
    for node in reversed(list(nodes)):
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            graph.remove(node, safe=True)


def hand_out(graph_nodes: list[ir.Node], values: Iterable[ir.Value], *, like: ir.Node) -> list[ir.Value]:
    """The outputs of a body: each is made in it and is another value than the rest, by an Identity where it must."""
    own = {id(value) for node in graph_nodes for value in node.outputs}
    outputs = []
    for value in values:
        if id(value) in own:
            own.remove(id(value))
            outputs.append(value)
        else:
            node = new_node("Identity", [value], like=like)
            graph_nodes.append(node)
            outputs.append(describe(node.outputs[0], value))
    return outputs
