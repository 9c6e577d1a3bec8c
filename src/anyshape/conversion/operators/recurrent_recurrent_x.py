"""Recurrent layers: the native RNN, LSTM and GRU of ONNX, one node for each layer with both of its directions.

The operators are those of `conversion/operators/recurrent_recurrent.py`. ONNX has the gates in another order (input, output,
forget, cell instead of input, forget, cell, output; update, reset, new instead of reset, update, new), so rows of the
weights are re-ordered by nodes that `conversion/graph/recurrent_weights.py` carries out once. Where no native operator fits (a
projected LSTM, float64, which ONNX Runtime lacks), the steps are written out: `conversion/operators/recurrent_steps.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.conversion.operators import recurrent_steps
from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.recurrent_steps import Cell

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN_TANH": (0,), "RNN_RELU": (0,)}
"""Which of torch's gates stands at each place of ONNX's."""


def run_layers(
    mode: str,
    sequence: ir.Value,
    lengths: ir.Value | None,
    states: Sequence[ir.Value],
    weights: Sequence[ir.Value],
    *,
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool = False,
) -> tuple[ir.Value, ...]:
    """All layers over (time, batch, features), each row as far as its length: the output and the last states."""
    width = 2 if bidirectional else 1
    cells = _cells(weights, num_layers * width, has_biases=has_biases)
    ends: list[list[ir.Value]] = [[] for _ in states]
    for layer in range(num_layers):
        ours = slice(layer * width, (layer + 1) * width)
        begin = [_part_of_state(state, ours, len(cells)) for state in states]
        run = recurrent_steps.run_layer if _has_no_operator(cells[0]) else _run_native
        sequence, *last = run(mode, sequence, lengths, begin, cells[ours])
        for end, value in zip(ends, last, strict=True):
            end.append(value)
    if batch_first:
        sequence = op.Transpose(sequence, perm=[1, 0, 2])
    return sequence, *(end[0] if num_layers == 1 else op.Concat(*end, axis=0) for end in ends)


def _cells(weights: Sequence[ir.Value], count: int, *, has_biases: bool) -> list[Cell]:
    """Torch's flat list of weights: for each layer and direction two matrices, two biases, one projection, if any."""
    each = len(weights) // count
    cells = []
    for start in range(0, len(weights), each):
        inner, outer, *rest = weights[start : start + each]
        biases = (rest[0], rest[1]) if has_biases else None
        cells.append(Cell(inner, outer, biases, rest[-1] if each % 2 else None))
    return cells


def _has_no_operator(cell: Cell) -> bool:
    return cell.projection is not None or cell.inner.dtype == ir.DataType.DOUBLE


def _part_of_state(state: ir.Value, cells: slice, count: int) -> Any:
    return state if cells.stop - cells.start == count else op.Slice(state, [cells.start], [cells.stop], [0])


def _run_native(
    mode: str, sequence: ir.Value, lengths: ir.Value | None, begin: Sequence[ir.Value], cells: Sequence[Cell]
) -> tuple[ir.Value, ...]:
    """One node for a layer; its output (time, direction, batch, features) becomes (time, batch, features)."""
    size = recurrent_steps.width(cells[0].outer)
    order = np.concatenate([np.arange(gate * size, (gate + 1) * size) for gate in _GATES[mode]])
    inner = _joined([_reordered(cell.inner, order) for cell in cells])
    outer = _joined([_reordered(cell.outer, order) for cell in cells])
    biases = _joined([_bias(cell, order) for cell in cells]) if cells[0].biases else None
    limits = None if lengths is None else op.Cast(lengths, to=ir.DataType.INT32)
    direction = "forward" if len(cells) == 1 else "bidirectional"
    inputs = (sequence, inner, outer, biases, limits, *(None if _is_zero(state) else state for state in begin))
    output, *last = _node(mode, inputs, direction=direction, hidden_size=size)
    if len(cells) == 1:
        return op.Squeeze(output, [1]), *last
    return op.Reshape(op.Transpose(output, perm=[0, 2, 1, 3]), [0, 0, len(cells) * size]), *last


def _node(mode: str, inputs: Sequence[ir.Value | None], **attributes: Any) -> Any:
    if mode == "LSTM":
        return op.LSTM(*inputs, **attributes)
    if mode == "GRU":
        return op.GRU(*inputs, **attributes, linear_before_reset=1)
    activations = ["Tanh" if mode == "RNN_TANH" else "Relu"] * (2 if attributes["direction"] == "bidirectional" else 1)
    return op.RNN(*inputs, **attributes, activations=activations)


def _reordered(rows: ir.Value, order: Any) -> Any:
    if np.array_equal(order, np.arange(len(order))):
        return rows
    return op.Gather(rows, op.Constant(value=ir.tensor(order.astype(np.int64))), axis=0)


def _bias(cell: Cell, order: Any) -> Any:
    assert cell.biases is not None
    return op.Concat(*(_reordered(bias, order) for bias in cell.biases), axis=0)


def _joined(values: Sequence[ir.Value]) -> Any:
    """Directions along a new first axis."""
    parts = [op.Unsqueeze(value, [0]) for value in values]
    return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0)


def _is_zero(value: ir.Value) -> bool:
    """Whether this is the state of a layer that was given none: it is ONNX's own default, too."""
    node = value.producer()
    if node is not None and node.op_type == "Slice" and node.inputs[0] is not None:
        return _is_zero(node.inputs[0])
    if node is None or node.op_type != "Expand" or node.inputs[0] is None:
        return False
    number = ir.convenience.get_const_tensor(node.inputs[0])
    return number is not None and number.size == 1 and not number.numpy().any()


def _dense(
    sequence: ir.Value, h: ir.Value, weights: Any, mode: str, has_biases: bool, num_layers: int, bidirectional: bool,
    batch_first: bool, *, c: ir.Value | None = None,
) -> tuple[ir.Value, ...]:  # fmt: skip
    sequence = op.Transpose(sequence, perm=[1, 0, 2]) if batch_first else sequence
    return run_layers(
        mode, sequence, None, [h] if c is None else [h, c], weights, has_biases=has_biases, num_layers=num_layers,
        bidirectional=bidirectional, batch_first=batch_first,
    )  # fmt: skip


def _dense_lstm(sequence: ir.Value, h: ir.Value, c: ir.Value, *rest: Any) -> tuple[ir.Value, ...]:
    return _dense(sequence, h, *rest, c=c)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "anyshape_recurrent::dense": _dense,
    "anyshape_recurrent::dense_lstm": _dense_lstm,
}
