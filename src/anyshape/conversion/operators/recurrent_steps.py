"""Recurrent layers written out as an ONNX Scan over time, where no native operator computes them.

What the input adds to the gates is computed for all steps at once; the body of the Scan adds what the state does. A row
whose length is reached keeps its state: forwards that is its last one, backwards the one it starts from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import onnx_ir as ir

from anyshape.conversion.operators import recurrent
from anyshape.conversion.operators.onnx_words import op


def width(weight: ir.Value) -> int:
    """How many columns a matrix of weights has."""
    assert weight.shape is not None
    columns = weight.shape[1]
    assert isinstance(columns, int)
    return columns


class Cell(NamedTuple):
    """The weights of one direction of one layer, as torch has them."""

    inner: ir.Value
    outer: ir.Value
    biases: tuple[ir.Value, ir.Value] | None
    projection: ir.Value | None


def run_layer(
    mode: str, sequence: ir.Value, lengths: ir.Value | None, begin: Sequence[ir.Value], cells: Sequence[Cell]
) -> tuple[ir.Value, ...]:
    """One layer over (time, batch, features), in one Scan for each direction: the output and the last states."""
    outputs, ends = [], []
    for index, cell in enumerate(cells):
        states = [op.Squeeze(op.Slice(state, [index], [index + 1], [0]), [0]) for state in begin]
        scanned = [_from_input(mode, sequence, cell), *([] if lengths is None else [_running(sequence, lengths)])]
        *last, output = _scan(mode, cell, states, scanned, backwards=index == 1)
        outputs.append(output)
        ends.append([op.Unsqueeze(value, [0]) for value in last])
    joined = outputs[0] if len(cells) == 1 else op.Concat(*outputs, axis=2)
    return joined, *(group[0] if len(cells) == 1 else op.Concat(*group, axis=0) for group in zip(*ends, strict=True))


def _from_input(mode: str, sequence: ir.Value, cell: Cell) -> Any:
    """What the input adds to the gates, with both biases where they may be added beforehand."""
    biases = [] if cell.biases is None else [cell.biases[0] if mode == "GRU" else op.Add(*cell.biases)]
    added = op.Gemm(op.Reshape(sequence, [-1, width(cell.inner)]), cell.inner, *biases, transB=1)
    return op.Reshape(added, op.Concat(op.Shape(sequence, start=0, end=2), op.Constant(value_ints=[-1]), axis=0))


def _running(sequence: ir.Value, lengths: ir.Value) -> Any:
    """(time, batch, 1): whether the row has such a step."""
    steps = op.Range(0, op.Squeeze(op.Shape(sequence, start=0, end=1)), 1)
    return op.Unsqueeze(op.Less(op.Unsqueeze(steps, [1]), op.Unsqueeze(lengths, [0])), [2])


def _scan(
    mode: str, cell: Cell, states: Sequence[ir.Value], scanned: Sequence[ir.Value], *, backwards: bool
) -> list[ir.Value]:
    names = ["h", "c"][: len(states)]
    before = [_row(f"{name}_before", cell.inner.dtype) for name in names]
    step = [_row("gates", cell.inner.dtype), _row("running", ir.DataType.BOOL)][: len(scanned)]
    with recurrent.recorded_apart() as nodes:
        after = _STEPS[mode](cell, step[0], *before)
        if len(step) > 1:
            after = [op.Where(step[1], new, old) for new, old in zip(after, before, strict=True)]
        output = op.Identity(after[0])
    graph = ir.Graph([*before, *step], [*after, output], nodes=nodes, name="step")
    attributes: dict[str, Any] = {"body": graph, "num_scan_inputs": len(step)}
    if backwards:
        attributes |= {"scan_input_directions": [1] * len(step), "scan_output_directions": [1]}
    return recurrent.record("Scan", [*states, *scanned], attributes, len(states) + 1)


def _row(name: str, dtype: ir.DataType | None) -> ir.Value:
    """An input of the body: (batch, features)."""
    assert dtype is not None
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape([None, None]))


def _lstm(cell: Cell, gates: Any, h: Any, c: Any) -> list[Any]:
    both = op.Gemm(h, cell.outer, gates, transB=1)
    inward, forget, new, outward = op.Split(both, num_outputs=4, axis=1)
    kept = op.Mul(op.Sigmoid(forget), c)
    added = op.Mul(op.Sigmoid(inward), op.Tanh(new))
    c = op.Add(kept, added)
    h = op.Mul(op.Sigmoid(outward), op.Tanh(c))
    return [h if cell.projection is None else op.Gemm(h, cell.projection, transB=1), c]


def _gru(cell: Cell, gates: Any, h: Any) -> list[Any]:
    from_state = op.Gemm(h, cell.outer, *(cell.biases or ())[1:], transB=1)
    reset, update, new = op.Split(gates, num_outputs=3, axis=1)
    reset_h, update_h, new_h = op.Split(from_state, num_outputs=3, axis=1)
    reset = op.Sigmoid(op.Add(reset, reset_h))
    update = op.Sigmoid(op.Add(update, update_h))
    new = op.Tanh(op.Add(new, op.Mul(reset, new_h)))
    return [op.Add(op.Mul(op.Sub(h, new), update), new)]


def _tanh(cell: Cell, gates: Any, h: Any) -> list[Any]:
    return [op.Tanh(op.Gemm(h, cell.outer, gates, transB=1))]


def _relu(cell: Cell, gates: Any, h: Any) -> list[Any]:
    return [op.Relu(op.Gemm(h, cell.outer, gates, transB=1))]


_STEPS: dict[str, Callable[..., list[Any]]] = {"LSTM": _lstm, "GRU": _gru, "RNN_TANH": _tanh, "RNN_RELU": _relu}
