"""Weights of recurrent layers laid out once: the file holds them as the operators of ONNX want them.

The gates of ONNX's RNN, LSTM and GRU stand in another order than torch's, and both directions in one tensor. The nodes
that re-order and join weights are carried out here, whatever their size, and the weights as torch had them leave the
file. Nothing else is touched: only nodes that move numbers, only between stored weights and the weight inputs of
recurrent operators, and no weight that is used elsewhere, too, since it would be stored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from anyshape.onnxfile.graph import constant_of, every_node, initializer, replace

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
    results = [value for node in layers for value in node.inputs[_WEIGHT_INPUTS] if value]
    moves = {id(node): node for value in results for node in _moves_behind(value)}
    replaced: dict[str | None, ir.Value] = {}
    for value in results:
        node = value.producer()
        if node is None or id(node) not in moves or value.name in replaced or not _may_move(value, moves):
            continue
        replaced[value.name] = _store_laid_out(model.graph, value)
    if replaced:
        RemoveUnusedNodesPass()(model)


def _moves_behind(value: ir.Value) -> Iterator[ir.Node]:
    """The nodes that make this value out of stored numbers; none if anything else takes part."""
    node = value.producer()
    if node is None or node.op_type not in _MOVES or not all(_is_stored(leaf) for leaf in _leaves(value)):
        return
    yield node
    for behind in node.inputs:
        if behind is not None:
            yield from _moves_behind(behind)


def _leaves(value: ir.Value) -> Iterator[ir.Value]:
    """What the value is made of, behind all nodes that only move."""
    for one in (value, *_values_behind(value)):
        node = one.producer()
        if node is None or node.op_type not in _MOVES:
            yield one


def _is_stored(value: ir.Value) -> bool:
    return ir.convenience.get_const_tensor(value) is not None


def _may_move(value: ir.Value, moves: dict[int, ir.Node]) -> bool:
    """Whether nobody else needs the weights behind this value; the row numbers and axes beside them may stay."""
    weights = [behind for behind in _values_behind(value) if behind.dtype != ir.DataType.INT64]
    return not any(
        weight.is_graph_output() or any(id(user) not in moves for user, _ in weight.uses()) for weight in weights
    )


def _values_behind(value: ir.Value) -> Iterator[ir.Value]:
    """All values that this one is made of."""
    node = value.producer()
    for behind in node.inputs if node is not None and node.op_type in _MOVES else ():
        if behind is not None:
            yield behind
            yield from _values_behind(behind)


def _store_laid_out(graph: ir.Graph, value: ir.Value) -> ir.Value:
    """Put the finished numbers in the place of the value, under a name that tells where they come from."""
    array = _laid_out(value)
    source = next(leaf.name for leaf in _leaves(value) if leaf.dtype != ir.DataType.INT64)
    stored = initializer(graph, f"{source}_onnx", np.ascontiguousarray(array), value.dtype)
    replace(value, stored)
    return stored


def _laid_out(value: ir.Value) -> Any:
    node = value.producer()
    if node is None or node.op_type not in _MOVES:
        return constant_of(value)
    return _MOVES[node.op_type](node, *(_laid_out(behind) for behind in node.inputs if behind is not None))
