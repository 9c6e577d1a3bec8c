"""Where torch's recurrent layers and packed sequences can be answered by others, and a check that torch remembers.

Layers reach their operators through names of `torch._VF`. Functions of `torch.nn.utils.rnn` are imported into the
user's modules and kept under names that nobody can list, so their code is exchanged, not their names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir
import onnxscript.evaluator
import torch
from torch import Tensor, nn
from torch.fx.experimental import symbolic_shapes
from torch.nn.utils import rnn

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.speed.registration import register_fake
from anyshape.source.live_code import LOCK
from anyshape.torchkit.patches import configured, patched
from anyshape.torchkit.private_names import attribute, lookup

MODES = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN_TANH", "rnn_relu": "RNN_RELU"}
"""The operator of a layer -> what `layer.mode` calls it."""
_LAYERS = (nn.RNN, nn.LSTM, nn.GRU)


def original(name: str) -> Callable[..., Any]:
    """The operator that torch itself calls: `lstm`, `gru`, `rnn_tanh` or `rnn_relu`."""
    function: Callable[..., Any] = getattr(lookup("torch._C._VariableFunctions") or torch, name)
    return function


@contextlib.contextmanager
def operators_answered(answer: Callable[[str], Callable[..., Any]]) -> Iterator[None]:
    """Inside, `torch.lstm` and its like are what `answer` makes of their names, for layers and for direct calls."""
    with contextlib.ExitStack() as stack:
        for name in MODES:
            function = answer(name)
            if (functions := lookup("torch._VF")) is not None:
                stack.enter_context(patched(functions, name, function))
            stack.enter_context(patched(torch, name, function))
        # a strict trace refuses recurrent layers, since it would unroll them; it does not unroll what answers here
        stack.enter_context(configured("torch._dynamo.config.allow_rnn", value=True))
        yield


@contextlib.contextmanager
def packed_layers_answered(forward: Callable[[nn.RNNBase, Any, Any], Any]) -> Iterator[None]:
    """Inside, layers that are given a packed sequence call `forward`, which may decline with NotImplemented."""
    with contextlib.ExitStack() as stack:
        for layer in _LAYERS:
            stack.enter_context(patched(layer, "forward", _for_packed(layer.forward, forward)))
        yield


def _for_packed(dense: Callable[..., Any], packed: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any, input: Any, hx: Any = None) -> Any:  # noqa: A002  torch's name for it
        if isinstance(input, rnn.PackedSequence):
            attribute(self, "torch.nn.RNNBase._update_flat_weights", lambda: None)()
            result = packed(self, input, hx)
            if result is not NotImplemented:
                return result
        return dense(self, input, hx)

    return forward


@contextlib.contextmanager
def sequences_answered(answers: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Inside, functions of `torch.nn.utils.rnn` are answered by others."""
    with contextlib.ExitStack() as stack:
        for name, answer in answers.items():
            elsewhere = f"_anyshape_{name}"
            stack.enter_context(patched(rnn, elsewhere, answer))
            stack.enter_context(_with_code(getattr(rnn, name), _call_of(elsewhere)))
        yield


def _call_of(name: str) -> CodeType:
    """The code of a function that passes its arguments on to a global of this name."""

    def elsewhere(*args: Any, **kwargs: Any) -> Any:
        return _named_later(*args, **kwargs)  # type: ignore[name-defined] # noqa: F821

    return elsewhere.__code__.replace(co_names=(name,))


@contextlib.contextmanager
def _with_code(function: FunctionType, code: CodeType) -> Iterator[None]:
    """Inside, `function` runs other code, by whatever name it is called."""
    with LOCK:
        kept, function.__code__ = function.__code__, code
        try:
            yield
        finally:
            function.__code__ = kept


@contextlib.contextmanager
def reading_answered(answer: Callable[[torch.Tensor, Callable[[], Any]], Any]) -> Iterator[None]:
    """Inside, `tolist()` and `numpy()` of traced tensors are what `answer` makes of the tensor and of the reading."""
    with contextlib.ExitStack() as stack:
        for owner in filter(None, map(lookup, _TRACED_TENSORS)):
            for name in ("tolist", "numpy"):
                stack.enter_context(patched(owner, name, _reading(getattr(owner, name), answer)))
        yield


_TRACED_TENSORS = (
    "torch._subclasses.fake_tensor.FakeTensor",
    "torch._subclasses.functional_tensor.FunctionalTensor",
)


def _reading(read: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tensor, **options: answer(tensor, partial(read, tensor, **options))


def flat_weights(layer: nn.RNNBase) -> list[torch.Tensor]:
    return list(attribute(layer, "torch.nn.RNNBase._flat_weights", layer.parameters()))


def know(condition: Any) -> None:
    """Torch may take this condition on sizes for granted."""
    check = lookup("torch._check")
    if check is not None:
        check(condition)


def is_known(condition: Any) -> bool:
    """Whether this condition on sizes holds whatever they are."""
    return symbolic_shapes.statically_known_true(condition)


def record(operator: str, inputs: list[ir.Value | None], attributes: Mapping[str, Any], outputs: int) -> list[ir.Value]:
    """A node with as many outputs as are wanted; onnxscript knows only operators whose number of outputs is fixed."""
    node = ir.Node("", operator, inputs, ir.convenience.convert_attributes(attributes), num_outputs=outputs)
    recorder: Any = onnxscript.evaluator.default()
    recorder.nodes.append(node)
    return list(node.outputs)


@contextlib.contextmanager
def recorded_apart() -> Iterator[list[ir.Node]]:
    """Inside, nodes go to the list that is given, for the body of a loop, and not to the graph."""
    recorder: Any = onnxscript.evaluator.default()
    graph, recorder.nodes = recorder.nodes, []
    try:
        yield recorder.nodes
    finally:
        recorder.nodes = graph


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


def _dense(data: Tensor, h: Tensor, *layer: Any) -> tuple[Tensor, Tensor]:
    bidirectional = layer[4]
    return data.new_empty((*data.shape[:-1], h.shape[-1] * (2 if bidirectional else 1))), h.new_empty(h.shape)


def _dense_lstm(data: Tensor, h: Tensor, c: Tensor, *layer: Any) -> tuple[Tensor, ...]:
    return *_dense(data, h, *layer), c.new_empty(c.shape)


def _packed(data: Tensor, _b: Tensor, _s: Any, _u: Any, h: Tensor, *layer: Any) -> tuple[Tensor, Tensor]:
    return _dense(data, h, *layer)


def _packed_lstm(data: Tensor, _b: Tensor, _s: Any, _u: Any, h: Tensor, c: Tensor, *layer: Any) -> tuple[Tensor, ...]:
    return _dense_lstm(data, h, c, *layer)


_SHAPES: dict[str, Callable[..., Any]] = {
    "dense": _dense,
    "dense_lstm": _dense_lstm,
    "packed": _packed,
    "packed_lstm": _packed_lstm,
}
for _name, _schema in _SCHEMAS.items():
    torch.library.define(f"{NAMESPACE}::{_name}", _schema)
    register_fake(f"{NAMESPACE}::{_name}", _SHAPES[_name])


_NAMES = {"lstm": "nn.LSTM", "gru": "nn.GRU", "rnn_tanh": "nn.RNN", "rnn_relu": "nn.RNN"}
_COMMON = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_DENSE_ARGUMENTS = ("input", *_COMMON, "batch_first")
_PACKED_ARGUMENTS = ("data", "batch_sizes", *_COMMON)
_PLACE_OF_WEIGHTS_IN_PACKED = 3


def layer(operator: str, name: str, sequence: Sequence[Any], states: Any, *rest: Any) -> tuple[Tensor, ...]:
    """The operator for a layer: `dense` or `packed`; `name` is torch's name for the layer's own."""
    states = states if name == "lstm" else (states,)
    function = getattr(getattr(torch.ops, NAMESPACE), f"{operator}_lstm" if name == "lstm" else operator)
    results: tuple[Tensor, ...] = function(*sequence, *states, *rest)
    return results


def tell(used: Used, name: str, weights: Sequence[Tensor], has_biases: bool, cells: int) -> None:
    """Say what is put there, unless torch looks at every line that runs."""
    if torch.compiler.is_dynamo_compiling():
        return
    is_native = len(weights) == cells * (4 if has_biases else 2) and weights[0].dtype != torch.float64
    used(
        f"{_NAMES[name]}: " + ("native ONNX operators" if is_native else "a Scan over time, where ONNX has no operator")
    )


def _answer(used: Used, name: str) -> Callable[..., Any]:
    def answer(*args: Any, **kwargs: Any) -> Any:
        many = args[_PLACE_OF_WEIGHTS_IN_PACKED : _PLACE_OF_WEIGHTS_IN_PACKED + 1]
        is_packed = "batch_sizes" in kwargs or any(isinstance(weights, (list, tuple)) for weights in many)
        names = _PACKED_ARGUMENTS if is_packed else _DENSE_ARGUMENTS
        call = {**dict(zip(names, args, strict=False)), **kwargs}
        if call["train"] and call["dropout"]:
            return original(name)(*args, **kwargs)
        weights, both = list(call["params"]), call["bidirectional"]
        tell(used, name, weights, call["has_biases"], call["num_layers"] * (2 if both else 1))
        shape = (weights, MODES[name], call["has_biases"], call["num_layers"], both)
        if is_packed:
            return layer("packed", name, (call["data"], call["batch_sizes"], None, None), call["hx"], *shape)
        return layer("dense", name, (call["input"],), call["hx"], *shape, call["batch_first"])

    return answer


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    with operators_answered(lambda name: _answer(used, name)):
        yield


RECURRENT_LAYERS = Repair("recurrent layers", _apply, always=True)

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
        run = run_layer if _has_no_operator(cells[0]) else _run_native
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
    size = width(cells[0].outer)
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


def _onnx_dense(
    sequence: ir.Value, h: ir.Value, weights: Any, mode: str, has_biases: bool, num_layers: int, bidirectional: bool,
    batch_first: bool, *, c: ir.Value | None = None,
) -> tuple[ir.Value, ...]:  # fmt: skip
    sequence = op.Transpose(sequence, perm=[1, 0, 2]) if batch_first else sequence
    return run_layers(
        mode, sequence, None, [h] if c is None else [h, c], weights, has_biases=has_biases, num_layers=num_layers,
        bidirectional=bidirectional, batch_first=batch_first,
    )  # fmt: skip


def _onnx_dense_lstm(sequence: ir.Value, h: ir.Value, c: ir.Value, *rest: Any) -> tuple[ir.Value, ...]:
    return _onnx_dense(sequence, h, *rest, c=c)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "anyshape_recurrent::dense": _onnx_dense,
    "anyshape_recurrent::dense_lstm": _onnx_dense_lstm,
}


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
    with recorded_apart() as nodes:
        after = _STEPS[mode](cell, step[0], *before)
        if len(step) > 1:
            after = [op.Where(step[1], new, old) for new, old in zip(after, before, strict=True)]
        output = op.Identity(after[0])
    graph = ir.Graph([*before, *step], [*after, output], nodes=nodes, name="step")
    attributes: dict[str, Any] = {"body": graph, "num_scan_inputs": len(step)}
    if backwards:
        attributes |= {"scan_input_directions": [1] * len(step), "scan_output_directions": [1]}
    return record("Scan", [*states, *scanned], attributes, len(states) + 1)


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
