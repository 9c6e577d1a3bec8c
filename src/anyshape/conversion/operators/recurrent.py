"""Where torch's recurrent layers and packed sequences can be answered by others, and a check that torch remembers.

Layers reach their operators through names of `torch._VF`. Functions of `torch.nn.utils.rnn` are imported into the
user's modules and kept under names that nobody can list, so their code is exchanged, not their names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import onnx_ir as ir
import onnxscript.evaluator
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.fx.experimental import symbolic_shapes
from torch.nn.utils import rnn

from anyshape.torchkit.patches import patched
from anyshape.torchkit.state import LOCK

MODES = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN_TANH", "rnn_relu": "RNN_RELU"}
"""The operator of a layer -> what `layer.mode` calls it."""
_LAYERS = (nn.RNN, nn.LSTM, nn.GRU)


def original(name: str) -> Callable[..., Any]:
    """The operator that torch itself calls: `lstm`, `gru`, `rnn_tanh` or `rnn_relu`."""
    function: Callable[..., Any] = getattr(torch._C._VariableFunctions, name)
    return function


@contextlib.contextmanager
def operators_answered(answer: Callable[[str], Callable[..., Any]]) -> Iterator[None]:
    """Inside, `torch.lstm` and its like are what `answer` makes of their names, for layers and for direct calls."""
    with contextlib.ExitStack() as stack:
        for name in MODES:
            function = answer(name)
            stack.enter_context(patched(torch._VF, name, function))
            stack.enter_context(patched(torch, name, function))
        stack.enter_context(_layers_allowed())
        yield


@contextlib.contextmanager
def _layers_allowed() -> Iterator[None]:
    """A strict trace refuses recurrent layers, since it would unroll them; it does not unroll what answers here."""
    config = getattr(torch._dynamo, "config", None)
    if config is None or not hasattr(config, "allow_rnn"):
        yield
        return
    with config.patch(allow_rnn=True):
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
            self._update_flat_weights()
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
        for owner in (FakeTensor, FunctionalTensor):
            for name in ("tolist", "numpy"):
                stack.enter_context(patched(owner, name, _reading(getattr(owner, name), answer)))
        yield


def _reading(read: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tensor, **options: answer(tensor, partial(read, tensor, **options))


def flat_weights(layer: nn.RNNBase) -> list[torch.Tensor]:
    return list(layer._flat_weights)  # type: ignore[arg-type]


def know(condition: Any) -> None:
    """Torch may take this condition on sizes for granted."""
    torch._check(condition)


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
