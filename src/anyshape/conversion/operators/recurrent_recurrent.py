"""nn.RNN, nn.LSTM and nn.GRU stay one operator each through the trace.

Recognised: the calls of `torch.lstm`, `torch.gru`, `torch.rnn_tanh` and `torch.rnn_relu`, from layers or from the
user's own code, over padded or packed input. Torch takes them apart step by step, which pins the time axis. What is
put there is an operator that says of what shape the results are and is translated to the native operators of ONNX
(`conversion/operators/recurrent_recurrent_x.py`). It is the same recurrence with the same weights; dropout in training is left
to torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from anyshape.conversion.operators import recurrent
from anyshape.conversion.operators.repair import Repair, Used
from anyshape.torchkit.custom_operators import register_fake

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
            return recurrent.original(name)(*args, **kwargs)
        weights, both = list(call["params"]), call["bidirectional"]
        tell(used, name, weights, call["has_biases"], call["num_layers"] * (2 if both else 1))
        shape = (weights, recurrent.MODES[name], call["has_biases"], call["num_layers"], both)
        if is_packed:
            return layer("packed", name, (call["data"], call["batch_sizes"], None, None), call["hx"], *shape)
        return layer("dense", name, (call["input"],), call["hx"], *shape, call["batch_first"])

    return answer


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    with recurrent.operators_answered(lambda name: _answer(used, name)):
        yield


RECURRENT_LAYERS = Repair("recurrent layers", _apply, always=True)
