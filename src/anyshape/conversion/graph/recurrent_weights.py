"""Weights of recurrent layers laid out once: the file holds them as the operators of ONNX want them.

The gates of ONNX's RNN, LSTM and GRU stand in another order than torch's, and both directions in one tensor. The nodes
that re-order and join weights are carried out here, whatever their size, and the weights as torch had them leave the
file. Nothing else is touched: only nodes that move numbers, only between stored weights and the weight inputs of
recurrent operators, and no weight that is used elsewhere, too, since it would be stored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from anyshape.onnxfile.graph import constant_of, every_node, initializer, replace, users

_WEIGHT_INPUTS = slice(1, 4)
"""Of the input, of the state, and the biases of both."""


def _gather(node: ir.Node, data: Any, rows: Any) -> Any:
    return np.take(data, rows, axis=node.attributes.get_int("axis", 0))


def _concat(node: ir.Node, *parts: Any) -> Any:
    return np.concatenate(parts, axis=node.attributes.get_int("axis"))


def _unsqueeze(_node: ir.Node, data: Any, axes: Any) -> Any:
    return np.expand_dims(data, tuple(axes.tolist()))


_MOVES: dict[str, Callable[..., Any]] = {"Gather": _gather, "Concat": _concat, "Unsqueeze": _unsqueeze}
"""The nodes that the translation of recurrent layers writes: they move numbers and compute none."""


def lay_out_weights(model: ir.Model) -> None:
    """Carry out, in place, what re-orders the weights of recurrent operators."""
    layers = every_node(model.graph, "RNN", "LSTM", "GRU")
    results = {value: _origins(value) for node in layers for value in node.inputs[_WEIGHT_INPUTS] if value}
    stored = {value: found for value, found in results.items() if all(map(_is_stored, found[1]))}
    moves = {node for nodes, _ in stored.values() for node in nodes}
    replaced: dict[str | None, ir.Value] = {}
    for value, (nodes, leaves) in stored.items():
        if nodes and value.name not in replaced and _may_move(nodes, moves):
            replaced[value.name] = _store_laid_out(model.graph, value, leaves)
    if replaced:
        RemoveUnusedNodesPass()(model)


def _origins(value: ir.Value) -> tuple[list[ir.Node], list[ir.Value]]:
    """The nodes behind a value that only move numbers, and the values that they move."""
    node = value.producer()
    if node is None or node.op_type not in _MOVES:
        return [], [value]
    behind = [_origins(one) for one in node.inputs if one is not None]
    return [node, *(one for nodes, _ in behind for one in nodes)], [leaf for _, leaves in behind for leaf in leaves]


def _is_stored(value: ir.Value) -> bool:
    return ir.convenience.get_const_tensor(value) is not None


def _may_move(nodes: Sequence[ir.Node], moves: set[ir.Node]) -> bool:
    """Whether nobody else needs the weights that these nodes move; the row numbers and axes beside them may stay."""
    values = [value for node in nodes for value in node.inputs if value is not None]
    weights = [value for value in values if value.dtype != ir.DataType.INT64]
    return not any(weight.is_graph_output() or not moves.issuperset(users(weight)) for weight in weights)


def _store_laid_out(graph: ir.Graph, value: ir.Value, leaves: Sequence[ir.Value]) -> ir.Value:
    """Put the finished numbers in the place of the value, under a name that tells where they come from."""
    source = next(leaf.name for leaf in leaves if leaf.dtype != ir.DataType.INT64)
    stored = initializer(graph, f"{source}_onnx", np.ascontiguousarray(_array_of(value)), value.dtype)
    replace(value, stored)
    return stored


def _array_of(value: ir.Value) -> Any:
    node = value.producer()
    if node is None or node.op_type not in _MOVES:
        return constant_of(value)
    return _MOVES[node.op_type](node, *(_array_of(behind) for behind in node.inputs if behind is not None))
