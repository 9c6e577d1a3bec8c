"""Recurrent layers: nn.RNN, nn.LSTM and nn.GRU stay one operator each through a trace, and become ONNX's own.

Recognised: the calls of `torch.lstm`, `torch.gru`, `torch.rnn_tanh` and `torch.rnn_relu`, from layers or from the
user's own code, over padded or packed input. Torch takes them apart step by step, which pins the time axis. What is
put there is an operator that says of what shape the results are. It is the same recurrence with the same weights;
dropout in training is left to torch. Its translation is a native operator of ONNX for each layer with both of its
directions, or, where none fits, the steps written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir
import torch
from torch import Tensor

from anyshape.conversion.operators.onnx_words import BOOL, DOUBLE, op, scan, static_size
from anyshape.conversion.operators.repair import Answer, Repair, Used, all_patched
from anyshape.conversion.speed.operator_table import define
from anyshape.torchkit.private_names import lookup

# ---- what stands in a trace, and its shapes

NAMESPACE = "anyshape_recurrent"
"""The operators that stand in a trace for recurrent layers."""
_LAYER = "Tensor[] weights, str mode, bool has_biases, int num_layers, bool bidirectional"
_PACKED = "Tensor data, Tensor batch_sizes, Tensor? sorted_indices, Tensor? unsorted_indices"
_SCHEMAS = {
    "dense": f"(Tensor input, Tensor h, {_LAYER}, bool batch_first) -> (Tensor, Tensor)",
    "dense_lstm": f"(Tensor input, Tensor h, Tensor c, {_LAYER}, bool batch_first) -> (Tensor, Tensor, Tensor)",
    "packed": f"({_PACKED}, Tensor h, {_LAYER}) -> (Tensor, Tensor)",
    "packed_lstm": f"({_PACKED}, Tensor h, Tensor c, {_LAYER}) -> (Tensor, Tensor, Tensor)",
}


def _shapes_of_results(begin: slice, *args: Any) -> tuple[Tensor, ...]:
    """Of the output and of the last states; `begin` says where among the arguments the first ones stand."""
    data, states, bidirectional = args[0], args[begin], args[begin.stop + 4]
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    return data.new_empty((*data.shape[:-1], width)), *(state.new_empty(state.shape) for state in states)


STATES = {"dense": slice(1, 2), "dense_lstm": slice(1, 3), "packed": slice(4, 5), "packed_lstm": slice(4, 6)}
"""Which arguments of each operator are states; the sequence stands before them, what describes the layers behind."""
for _name, _schema in _SCHEMAS.items():
    define(f"{NAMESPACE}::{_name}", _schema, partial(_shapes_of_results, STATES[_name]))


# ---- the repair

_NAMES = {"lstm": "nn.LSTM", "gru": "nn.GRU", "rnn_tanh": "nn.RNN", "rnn_relu": "nn.RNN"}
"""The operators of layers, whose `mode` is the same in capitals -> what users call the layers."""
_COMMON = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_DENSE_ARGUMENTS = ("input", *_COMMON, "batch_first")
_PACKED_ARGUMENTS = ("data", "batch_sizes", *_COMMON)
_PLACE_OF_WEIGHTS_IN_PACKED = 3


def layer_called(operator: str, name: str, sequence: Sequence[Any], states: Any, *rest: Any) -> tuple[Tensor, ...]:
    """The operator for a layer: `dense` or `packed`; `name` is torch's name for the layer's own."""
    states = states if name == "lstm" else (states,)
    function = getattr(getattr(torch.ops, NAMESPACE), f"{operator}_lstm" if name == "lstm" else operator)
    results: tuple[Tensor, ...] = function(*sequence, *states, *rest)
    return results


def tell_of_layer(used: Used, name: str, weights: Sequence[Tensor], has_biases: bool, cells: int) -> None:
    """Say what is put there, unless torch looks at every line that runs."""
    if torch.compiler.is_dynamo_compiling():
        return
    is_native = len(weights) == cells * (4 if has_biases else 2) and weights[0].dtype != torch.float64
    used(
        f"{_NAMES[name]}: " + ("native ONNX operators" if is_native else "a Scan over time, where ONNX has no operator")
    )


def _answer_for_layer(used: Used, name: str) -> Answer:
    def answer(*args: Any, **kwargs: Any) -> Any:
        many = args[_PLACE_OF_WEIGHTS_IN_PACKED : _PLACE_OF_WEIGHTS_IN_PACKED + 1]
        is_packed = "batch_sizes" in kwargs or any(isinstance(weights, (list, tuple)) for weights in many)
        names = _PACKED_ARGUMENTS if is_packed else _DENSE_ARGUMENTS
        call = {**dict(zip(names, args, strict=False)), **kwargs}
        if call["train"] and call["dropout"]:
            return getattr(lookup("torch._C._VariableFunctions") or torch, name)(*args, **kwargs)
        weights, both = list(call["params"]), call["bidirectional"]
        tell_of_layer(used, name, weights, call["has_biases"], call["num_layers"] * (2 if both else 1))
        shape = (weights, name.upper(), call["has_biases"], call["num_layers"], both)
        if is_packed:
            return layer_called("packed", name, (call["data"], call["batch_sizes"], None, None), call["hx"], *shape)
        return layer_called("dense", name, (call["input"],), call["hx"], *shape, call["batch_first"])

    return answer


def _operators_answered(used: Used) -> AbstractContextManager[None]:
    """Inside, `torch.lstm` and its like are answered here, for layers and for direct calls."""
    answers = {name: _answer_for_layer(used, name) for name in _NAMES}
    owners = [owner for owner in (lookup("torch._VF"), torch) if owner is not None]  # layers reach them by `torch._VF`
    return all_patched((owner, *answer) for answer in answers.items() for owner in owners)


RECURRENT_LAYERS = Repair("recurrent layers", _operators_answered, always=True)

# ---- ONNX: one node for each layer

# ONNX has the gates in another order: input, output, forget, cell instead of input, forget, cell, output; update,
# reset, new instead of reset, update, new. The nodes that re-order rows of weights are carried out when the file is
# finished.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN_TANH": (0,), "RNN_RELU": (0,)}
"""Which of torch's gates stands at each place of ONNX's."""


class Cell(NamedTuple):
    """The weights of one direction of one layer, as torch has them."""

    inner: ir.Value
    outer: ir.Value
    biases: tuple[ir.Value, ir.Value] | None
    projection: ir.Value | None


class Layers(NamedTuple):
    """What describes layers in the arguments of our operators."""

    weights: Sequence[ir.Value]
    mode: str
    has_biases: bool
    num_layers: int
    bidirectional: bool


def layers_in_onnx(
    sequence: ir.Value,
    lengths: ir.Value | None,
    states: Sequence[ir.Value],
    layers: Layers,
    *,
    batch_first: bool = False,
) -> tuple[ir.Value, ...]:
    """All layers over (time, batch, features), each row as far as its length: the output and the last states."""
    width = 2 if layers.bidirectional else 1
    cells = _cells_of(layers.weights, layers.num_layers * width, has_biases=layers.has_biases)
    ends: list[list[ir.Value]] = [[] for _ in states]
    for layer in range(layers.num_layers):
        ours = slice(layer * width, (layer + 1) * width)
        begin = [_part_of_state(state, ours, len(cells)) for state in states]
        layer_in_onnx = _layer_in_steps if _has_no_operator(cells[0]) else _native_layer
        sequence, *last = layer_in_onnx(layers.mode, sequence, lengths, begin, cells[ours])
        for end, value in zip(ends, last, strict=True):
            end.append(value)
    if batch_first:
        sequence = op.Transpose(sequence, perm=[1, 0, 2])
    return sequence, *(end[0] if layers.num_layers == 1 else op.Concat(*end, axis=0) for end in ends)


def _cells_of(weights: Sequence[ir.Value], count: int, *, has_biases: bool) -> list[Cell]:
    """Torch's flat list of weights: for each layer and direction two matrices, two biases, one projection, if any."""
    each = len(weights) // count
    cells = []
    for start in range(0, len(weights), each):
        inner, outer, *rest = weights[start : start + each]
        biases = (rest[0], rest[1]) if has_biases else None
        cells.append(Cell(inner, outer, biases, rest[-1] if each % 2 else None))
    return cells


def _has_no_operator(cell: Cell) -> bool:
    """Projected layers are in no operator of ONNX's; float64 is in none of ONNX Runtime's."""
    return cell.projection is not None or cell.inner.dtype == DOUBLE


def _part_of_state(state: ir.Value, cells: slice, count: int) -> Any:
    return state if cells.stop - cells.start == count else op.Slice(state, [cells.start], [cells.stop], [0])


def _native_layer(
    mode: str, sequence: ir.Value, lengths: ir.Value | None, begin: Sequence[ir.Value], cells: Sequence[Cell]
) -> tuple[ir.Value, ...]:
    """One node for a layer; its output (time, direction, batch, features) becomes (time, batch, features)."""
    size = _columns(cells[0].outer)
    order = np.concatenate([np.arange(gate * size, (gate + 1) * size) for gate in _GATES[mode]])
    inner = _directions_stacked([_rows_in_order(cell.inner, order) for cell in cells])
    outer = _directions_stacked([_rows_in_order(cell.outer, order) for cell in cells])
    biases = _directions_stacked([_biases(cell, order) for cell in cells]) if cells[0].biases else None
    limits = None if lengths is None else op.Cast(lengths, to=ir.DataType.INT32)
    direction = "forward" if len(cells) == 1 else "bidirectional"
    inputs = (sequence, inner, outer, biases, limits, *(None if _is_zero(state) else state for state in begin))
    output, *last = _native_node(mode, inputs, direction=direction, hidden_size=size)
    if len(cells) == 1:
        return op.Squeeze(output, [1]), *last
    return op.Reshape(op.Transpose(output, perm=[0, 2, 1, 3]), [0, 0, len(cells) * size]), *last


def _native_node(mode: str, inputs: Sequence[ir.Value | None], **attributes: Any) -> Any:
    if mode == "LSTM":
        return op.LSTM(*inputs, **attributes)
    if mode == "GRU":
        # torch multiplies by the reset gate after the state's own product
        return op.GRU(*inputs, **attributes, linear_before_reset=1)
    activations = ["Tanh" if mode == "RNN_TANH" else "Relu"] * (2 if attributes["direction"] == "bidirectional" else 1)
    return op.RNN(*inputs, **attributes, activations=activations)


def _rows_in_order(rows: ir.Value, order: Any) -> Any:
    if np.array_equal(order, np.arange(len(order))):
        return rows
    return op.Gather(rows, op.Constant(value=ir.tensor(order.astype(np.int64))), axis=0)


def _biases(cell: Cell, order: Any) -> Any:
    assert cell.biases is not None
    return op.Concat(*(_rows_in_order(bias, order) for bias in cell.biases), axis=0)


def _directions_stacked(values: Sequence[ir.Value]) -> Any:
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


def _columns(weight: ir.Value) -> int:
    """How many columns a matrix of weights has."""
    columns = static_size(weight, 1)
    assert columns is not None
    return columns


# ---- ONNX: the steps of a layer as a Scan over time

# What the input adds to the gates is computed for all steps at once; the body of the Scan adds what the state does. A
# row whose length is reached keeps its state: forwards that is its last one, backwards the one it starts from.


def _layer_in_steps(
    mode: str, sequence: ir.Value, lengths: ir.Value | None, begin: Sequence[ir.Value], cells: Sequence[Cell]
) -> tuple[ir.Value, ...]:
    """One layer over (time, batch, features), in one Scan for each direction: the output and the last states."""
    outputs, ends = [], []
    for index, cell in enumerate(cells):
        states = [op.Squeeze(op.Slice(state, [index], [index + 1], [0]), [0]) for state in begin]
        scanned = [_gates_from_input(mode, sequence, cell)]
        if lengths is not None:
            steps = op.Squeeze(op.Shape(sequence, start=0, end=1))
            scanned.append(op.Unsqueeze(running_rows(lengths, steps), [2]))
        *last, output = _scanned_over_time(mode, cell, states, scanned, backwards=index == 1)
        outputs.append(output)
        ends.append([op.Unsqueeze(value, [0]) for value in last])
    joined = outputs[0] if len(cells) == 1 else op.Concat(*outputs, axis=2)
    return joined, *(group[0] if len(cells) == 1 else op.Concat(*group, axis=0) for group in zip(*ends, strict=True))


def _gates_from_input(mode: str, sequence: ir.Value, cell: Cell) -> Any:
    """What the input adds to the gates, with both biases where they may be added beforehand."""
    biases = [] if cell.biases is None else [cell.biases[0] if mode == "GRU" else op.Add(*cell.biases)]
    added = op.Gemm(op.Reshape(sequence, [-1, _columns(cell.inner)]), cell.inner, *biases, transB=1)
    return op.Reshape(added, op.Concat(op.Shape(sequence, start=0, end=2), op.Constant(value_ints=[-1]), axis=0))


def running_rows(lengths: ir.Value, steps: ir.Value) -> Any:
    """(time, batch): whether the row has such a step, for so many steps."""
    return op.Less(op.Unsqueeze(op.Range(0, steps, 1), [1]), op.Unsqueeze(lengths, [0]))


def _scanned_over_time(
    mode: str, cell: Cell, states: Sequence[ir.Value], scanned: Sequence[ir.Value], *, backwards: bool
) -> list[ir.Value]:
    names = ["h", "c"][: len(states)]
    before = [_row(f"{name}_before", cell.inner.dtype) for name in names]
    inputs = [_row("gates", cell.inner.dtype), _row("running", BOOL)][: len(scanned)]

    def step(*values: Any) -> list[Any]:
        old, gates, running = values[: len(states)], values[len(states)], values[len(states) + 1 :]
        after = _STEPS[mode](cell, gates, *old)
        if running:
            after = [op.Where(running[0], new, kept) for new, kept in zip(after, old, strict=True)]
        return [*after, op.Identity(after[0])]

    backward = {"scan_input_directions": [1] * len(inputs), "scan_output_directions": [1]}
    return scan(states, scanned, [*before, *inputs], step, **(backward if backwards else {}))


def _row(name: str, dtype: ir.DataType | None) -> ir.Value:
    """An input of the body: (batch, features)."""
    assert dtype is not None
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape([None, None]))


def _step_of_lstm(cell: Cell, gates: Any, h: Any, c: Any) -> list[Any]:
    both = op.Gemm(h, cell.outer, gates, transB=1)
    inward, forget, new, outward = op.Split(both, num_outputs=4, axis=1)
    kept = op.Mul(op.Sigmoid(forget), c)
    added = op.Mul(op.Sigmoid(inward), op.Tanh(new))
    c = op.Add(kept, added)
    h = op.Mul(op.Sigmoid(outward), op.Tanh(c))
    return [h if cell.projection is None else op.Gemm(h, cell.projection, transB=1), c]


def _step_of_gru(cell: Cell, gates: Any, h: Any) -> list[Any]:
    from_state = op.Gemm(h, cell.outer, *(cell.biases or ())[1:], transB=1)
    reset, update, new = op.Split(gates, num_outputs=3, axis=1)
    reset_h, update_h, new_h = op.Split(from_state, num_outputs=3, axis=1)
    reset = op.Sigmoid(op.Add(reset, reset_h))
    update = op.Sigmoid(op.Add(update, update_h))
    new = op.Tanh(op.Add(new, op.Mul(reset, new_h)))
    return [op.Add(op.Mul(op.Sub(h, new), update), new)]


def _step_of_rnn(activation: Callable[..., Any], cell: Cell, gates: Any, h: Any) -> list[Any]:
    return [activation(op.Gemm(h, cell.outer, gates, transB=1))]


_STEPS: dict[str, Callable[..., list[Any]]] = {
    "LSTM": _step_of_lstm,
    "GRU": _step_of_gru,
    "RNN_TANH": partial(_step_of_rnn, op.Tanh),
    "RNN_RELU": partial(_step_of_rnn, op.Relu),
}

# ---- the table's entries


def _onnx_dense(begin: slice, *args: Any) -> tuple[ir.Value, ...]:
    *layers, batch_first = args[begin.stop :]
    sequence = op.Transpose(args[0], perm=[1, 0, 2]) if batch_first else args[0]
    return layers_in_onnx(sequence, None, args[begin], Layers(*layers), batch_first=batch_first)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    f"{NAMESPACE}::{name}": partial(_onnx_dense, STATES[name]) for name in ("dense", "dense_lstm")
}
