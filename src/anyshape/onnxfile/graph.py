"""The graph of a file, read and changed: the few words in which rewrites, control flow and freeing are written.

Every function that changes something changes the graph in place, for a caller that owns it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from anyshape.sizes import budgets

STANDARD_DOMAINS = ("", "ai.onnx")
"""Two names of one set of operators: a file may use either."""

Axes = Sequence[int | str | None]
Array = Any


# ---- nodes


def is_standard(node: ir.Node | onnx.NodeProto) -> bool:
    """Whether an operator is one of ONNX itself."""
    return node.domain in STANDARD_DOMAINS


def is_op(node: ir.Node | None, *kinds: str) -> bool:
    return node is not None and is_standard(node) and node.op_type in kinds


def name_of(node: ir.Node) -> str:
    """How a node is called in a sentence; many have no name, but their results do."""
    return node.name or (node.outputs[0].name if node.outputs else None) or "?"


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """The plain value of an attribute; a reference to a function's parameter has none."""
    found = node.attributes.get(name)
    return default if found is None or found.is_ref() else found.value


def permutation(node: ir.Node) -> tuple[int, ...]:
    """The order of a Transpose; empty where it is left to the rank."""
    return tuple(node.attributes.get_ints("perm", ()))


def first_input(node: ir.Node) -> ir.Value:
    value = node.inputs[0]
    assert value is not None
    return value


def maker(value: ir.Value | None, *kinds: str) -> ir.Node | None:
    """The node that makes a value, if it is of one of these kinds."""
    node = None if value is None else value.producer()
    return node if is_op(node, *kinds) else None


def users(value: ir.Value) -> list[ir.Node]:
    return [node for node, _ in value.uses()]


def only_user(value: ir.Value, *kinds: str) -> ir.Node | None:
    """The one node that reads a value, if there is no other reader and it is of one of these kinds."""
    found = users(value)
    return found[0] if len(found) == 1 and not value.is_graph_output() and is_op(found[0], *kinds) else None


# ---- graphs


def nodes_of(graph: ir.Graph, *kinds: str) -> Iterable[ir.Node]:
    """The nodes of these kinds that are there now; those in other graphs are not looked at."""
    return [node for node in graph if is_op(node, *kinds)]


def every_node(graph: ir.Graph, *kinds: str) -> list[ir.Node]:
    """The nodes that are there now, with those of the graphs inside; all of them where no kinds are named."""
    nodes = ir.traversal.RecursiveGraphIterator(graph)
    return [node for node in nodes if is_op(node, *kinds)] if kinds else list(nodes)


def graphs_in(node: ir.Node) -> list[ir.Graph]:
    """The bodies of a node: branches of an If, the step of a Scan or Loop."""
    found: list[ir.Graph] = []
    for one in node.attributes.values():
        if one.is_ref():
            continue
        if one.type == ir.AttributeType.GRAPH:
            found.append(one.as_graph())
        elif one.type == ir.AttributeType.GRAPHS:
            found.extend(one.as_graphs())
    return found


ProtoGraph = onnx.GraphProto | onnx.FunctionProto


def proto_graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The main graph of a file as protobuf reads it, and every graph inside of it."""
    return (graph for graph in graphs_within(model.graph) if isinstance(graph, onnx.GraphProto))


def graphs_within(*graphs: ProtoGraph) -> Iterator[ProtoGraph]:
    """These, and every graph inside of them."""
    waiting = list(graphs)
    while waiting:
        graph = waiting.pop()
        yield graph
        for one in (one for node in graph.node for one in node.attribute):
            waiting += [one.g] if one.HasField("g") else []
            waiting += one.graphs


def names_in(model: ir.Model) -> set[str]:
    """The names of all values and nodes, in whatever graph they are."""
    taken = set()
    for graph in model.graphs():
        taken |= {value.name or "" for value in (*graph.inputs, *graph.initializers.values())}
        for node in graph:
            taken |= {node.name or "", *(value.name or "" for value in node.outputs)}
    return taken


# ---- constants


def constant_of(value: ir.Value | None) -> Array | None:
    """The numbers of a constant, or None."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def integers_in(tensor: ir.TensorProtocol | None, most: int) -> tuple[int, ...] | None:
    """The numbers of a tensor of whole numbers; None for any other, and for more than `most`, which are not read."""
    if tensor is None or tensor.dtype not in (ir.DataType.INT64, ir.DataType.INT32) or tensor.size > most:
        return None
    return tuple(int(number) for number in tensor.numpy().ravel())


def whole_numbers(value: ir.Value | None) -> tuple[int, ...] | None:
    """The numbers of a short integer constant; None for anything else."""
    return (
        None if value is None else integers_in(ir.convenience.get_const_tensor(value), budgets.LONGEST_SHORT_CONSTANT)
    )


def initializer(graph: ir.Graph, name: str, array: Array, dtype: ir.DataType | None = None) -> ir.Value:
    """Numbers stored with the graph; `dtype` is for those that NumPy has under another name."""
    tensor = ir.tensor(array, dtype=dtype, name=name)
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
    graph.register_initializer(value)
    return value


def constant(graph: ir.Graph | ir.Function | None, numbers: int | Sequence[int]) -> ir.Value:
    """Whole numbers as an initializer; one for all that ask for the same."""
    assert isinstance(graph, ir.Graph)
    array = np.asarray(numbers, dtype=np.int64)
    kind = "size_" if array.ndim == 0 else "sizes_"
    name = kind + "_".join(str(number).replace("-", "minus") for number in array.ravel())
    return graph.initializers[name] if name in graph.initializers else initializer(graph, name, array)


def constant_node(numbers: int | Sequence[int], *, like: ir.Node) -> ir.Node:
    """Whole numbers as a node, which can go to a body with what needs them."""
    node = new_node("Constant", [], {"value": ir.tensor(np.array(numbers, dtype=np.int64))}, like=like)
    node.outputs[0].dtype = ir.DataType.INT64
    node.outputs[0].shape = ir.Shape(np.shape(numbers))
    return node


# ---- new nodes


def new_node(
    operator: str, inputs: Sequence[ir.Value | None], attributes: Any = None, *, like: ir.Node,
    outputs: int = 1, domain: str = "",
) -> ir.Node:  # fmt: skip
    """A node that comes from the same line of the user's as another; it stands nowhere yet."""
    node = ir.node(operator, list(inputs), attributes, domain=domain, num_outputs=outputs)
    node.metadata_props.update(like.metadata_props)
    return node


def insert(
    before: ir.Node, operator: str, inputs: Sequence[ir.Value | None], attributes: dict[str, Any] | None = None, *,
    axes: Axes | None = None, like: ir.Value | None = None,
) -> ir.Value:  # fmt: skip
    """The result of a new node in front of another one; `axes` are its sizes, and its type is that of `like`."""
    return insert_several(before, operator, inputs, attributes or {}, [(axes, like)])[0]


def insert_several(
    before: ir.Node, operator: str, inputs: Sequence[ir.Value | None], attributes: dict[str, Any],
    results: Sequence[tuple[Axes | None, ir.Value | None]],
) -> Sequence[ir.Value]:  # fmt: skip
    """The same with several results, for each its sizes and what it is like."""
    node = new_node(operator, inputs, attributes, like=before, outputs=len(results))
    for result, (axes, like) in zip(node.outputs, results, strict=True):
        result.shape = None if axes is None else ir.Shape(list(axes))
        result.type = None if like is None else like.type
    assert before.graph is not None
    before.graph.insert_before(before, node)
    return node.outputs


def transposed(before: ir.Node, value: ir.Value, order: Sequence[int], axes: Axes) -> ir.Value:
    """A value with its axes in another order; `axes` are its sizes as they stand."""
    return insert(before, "Transpose", [value], {"perm": list(order)}, axes=[axes[axis] for axis in order], like=value)


def describe(value: ir.Value, like: ir.Value) -> ir.Value:
    """Give a value the type and shape of another."""
    value.type, value.shape = like.type, None if like.shape is None else like.shape.copy()
    return value


# ---- other nodes in the place of old ones


def replace(old: ir.Value, new: ir.Value, *, keep_name: bool = False) -> None:
    """Everybody who read the old value reads the new one; what the graph returns keeps its place.

    `keep_name` is for a new value that nobody knows by its name: where the old one is returned, it gets that one's.
    """
    if keep_name and old.is_graph_output():
        new.name, old.name = old.name, None
    old.replace_all_uses_with(new, replace_graph_outputs=True)


def put_instead(node: ir.Node, value: ir.Value) -> None:
    """A new value in the place of a node with one result, which has its type, shape and name, and the node is gone."""
    old = node.outputs[0]
    value.type, value.shape = old.type, old.shape
    assert node.graph is not None
    replace(old, value, keep_name=True)
    node.graph.remove(node, safe=True)


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


# ---- what depends on what, where nodes may hold graphs of their own


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
