"""Reading and replacing nodes: the few words in which all rewrites are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

_LONGEST = 64
"""Numbers in a constant that tells an axis, a size or an order; weights are not read."""


def is_op(node: ir.Node | None, *kinds: str) -> bool:
    return node is not None and node.domain in ("", "ai.onnx") and node.op_type in kinds


def maker(value: ir.Value | None, *kinds: str) -> ir.Node | None:
    """The node that makes a value, if it is of one of these kinds."""
    node = None if value is None else value.producer()
    return node if is_op(node, *kinds) else None


def first_input(node: ir.Node) -> ir.Value:
    value = node.inputs[0]
    assert value is not None
    return value


def users(value: ir.Value) -> list[ir.Node]:
    return [node for node, _ in value.uses()]


def only_user(value: ir.Value, *kinds: str) -> ir.Node | None:
    """The one node that reads a value, if there is no other reader and it is of one of these kinds."""
    found = users(value)
    return found[0] if len(found) == 1 and not value.is_graph_output() and is_op(found[0], *kinds) else None


def whole_numbers(value: ir.Value | None) -> tuple[int, ...] | None:
    """The numbers of a short integer constant; None for anything else."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.size > _LONGEST or tensor.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
        return None
    return tuple(int(number) for number in tensor.numpy().ravel())


def permutation(node: ir.Node) -> tuple[int, ...]:
    """The order of a Transpose; empty where it is left to the rank."""
    return tuple(node.attributes.get_ints("perm", ()))


def constant(graph: ir.Graph, numbers: int | Sequence[int]) -> ir.Value:
    """Whole numbers as an initializer; one for all that ask for the same."""
    array = np.asarray(numbers, dtype=np.int64)
    kind = "size_" if array.ndim == 0 else "sizes_"
    name = kind + "_".join(str(number).replace("-", "minus") for number in array.ravel())
    if name not in graph.initializers:
        tensor = ir.tensor(array, name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
        graph.register_initializer(value)
    return graph.initializers[name]


def insert(
    before: ir.Node, kind: str, inputs: Sequence[ir.Value | None], attributes: dict[str, Any] | None = None, *,
    axes: Sequence[int | str | None] | None = None, like: ir.Value | None = None,
) -> ir.Value:  # fmt: skip
    """The result of a new node in front of another one; `axes` are its sizes, and its type is that of `like`."""
    return insert_several(before, kind, inputs, attributes or {}, [(axes, like)])[0]


def insert_several(
    before: ir.Node, kind: str, inputs: Sequence[ir.Value | None], attributes: dict[str, Any],
    results: Sequence[tuple[Sequence[int | str | None] | None, ir.Value | None]],
) -> Sequence[ir.Value]:  # fmt: skip
    """The same with several results, for each its sizes and what it is like."""
    node = ir.node(kind, list(inputs), attributes, num_outputs=len(results))
    node.metadata_props.update(before.metadata_props)
    for made, (axes, like) in zip(node.outputs, results, strict=True):
        made.shape = None if axes is None else ir.Shape(list(axes))
        made.type = None if like is None else like.type
    assert before.graph is not None
    before.graph.insert_before(before, node)
    return node.outputs


def transposed(before: ir.Node, value: ir.Value, order: Sequence[int], axes: Sequence[int | str | None]) -> ir.Value:
    """A value with its axes in another order; `axes` are its sizes as they stand."""
    return insert(before, "Transpose", [value], {"perm": list(order)}, axes=[axes[axis] for axis in order], like=value)


def replace(old: ir.Value, new: ir.Value) -> None:
    """Everybody who read the old value reads the new one; what the model returns keeps its place."""
    old.replace_all_uses_with(new, replace_graph_outputs=True)


def nodes_of(graph: ir.Graph, *kinds: str) -> Iterable[ir.Node]:
    """The nodes of these kinds that are there now; those in other graphs are not looked at."""
    return [node for node in graph if is_op(node, *kinds)]
