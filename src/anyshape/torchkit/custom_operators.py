"""Operators that are not torch's own: found in all the forms in which a user holds them, and their calls answered."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from anyshape.source.spans import Span, span_of_stack
from anyshape.torchkit.patches import patched
from anyshape.torchkit.private_names import NAMES, OpOverload, OpOverloadPacket, attribute, lookup

_OWN_NAMESPACES = {
    "aten", "prim", "prims", "quantized", "quantized_decomposed", "_quantized", "quantization", "onednn", "mkldnn",
    "mkldnn_prepacked", "mkl", "sparse", "inductor", "_inductor_test", "inductor_prims", "c10d", "c10d_functional",
    "_c10d_functional", "_c10d_functional_autograd", "symm_mem", "fsdp", "_dtensor", "static_runtime", "profiler",
    "streams", "rngprims", "debugprims", "debug_mode_ops", "flex_lib", "export", "higher_order", "_native",
    "onnx", "onnx_symbolic", "cuda", "xnnpack", "prepacked", "tensorexpr", "_caffe2", "caffe2", "anyshape",
}  # fmt: skip
"""Of torch, and ours."""

Answer = Callable[[Any, "OperatorCall"], Any]
"""Given an operator and its call, the result."""


class OperatorCall:
    """One call of a custom operator: what it was given, and where in the user's source."""

    def __init__(self, plainly: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        self.span: Span | None = span_of_stack(sys._getframe(2))
        self.plainly = plainly
        """What torch itself would do."""


def is_custom(target: Any) -> bool:
    """Whether a node's target is an operator of a namespace that is not torch's own."""
    return isinstance(target, OpOverload) and target.namespace not in _OWN_NAMESPACES


def is_operator(value: Any) -> bool:
    """Whether this is an operator in any of the forms that a user holds."""
    return isinstance(value, (OpOverload, OpOverloadPacket, *_definition_classes()))


def overloads_of(value: Any) -> list[Any]:
    """The overloads that an operator in any form, or its name, stands for; none for anything else."""
    if isinstance(value, OpOverload):
        return [value]
    if isinstance(value, OpOverloadPacket):
        return [getattr(value, name) for name in value.overloads()]
    if isinstance(value, _definition_classes()):
        found = attribute(value, f"{_DEFINITION}._opoverload")
    else:
        found = _by_name(value) if isinstance(value, str) else None
    return [] if found is None else [found]


def custom_overloads() -> list[Any]:
    """All operators of this process that are not torch's own."""
    all_names = lookup("torch._C._dispatch_get_all_op_names")
    names = [] if all_names is None else all_names()
    custom = [name for name in names if name.partition("::")[0] not in _OWN_NAMESPACES]
    return [overload for overload in map(_by_name, custom) if overload is not None]


def _by_name(name: str) -> Any:
    """`mine::twice` or `mine::add.Tensor` as an overload; None where there is no such operator."""
    namespace, separator, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    if not separator or not operator:
        return None
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return getattr(packet, overload or "default", None)


_DEFINITION = "torch._library.custom_ops.CustomOpDef"


def _definition_classes() -> tuple[type, ...]:
    """Of what `torch.library.custom_op` makes."""
    found = lookup(_DEFINITION)
    return () if found is None else (found,)


def written_arguments(overload: Any) -> tuple[str, ...]:
    """An operator's arguments as in a `def`: `x`, `factor=2.0`."""
    found = [(a.name, a.has_default_value(), a.default_value) for a in overload._schema.arguments]
    return tuple(f"{name}={default!r}" if optional else name for name, optional, default in found)


def decomposes(overload: Any) -> bool:
    """Whether torch itself takes the operator apart after the trace."""
    can_decompose = attribute(overload, "torch._ops.OpOverload._can_decompose", lambda: False)
    return bool(can_decompose()) or overload in (lookup("torch._decomp.decomposition_table") or ())


def function_of(value: Any) -> Callable[..., Any] | None:
    """An operator as a function of numpy arrays; None for anything else."""
    if not is_operator(value):
        return None

    def function(*arrays: Any, **attributes: Any) -> Any:
        tensors = [None if array is None else torch.from_numpy(array) for array in arrays]
        with torch.no_grad():
            results = value(*tensors, **attributes)
        if isinstance(results, torch.Tensor):
            return results.cpu().numpy()
        return tuple(result.cpu().numpy() for result in results)

    function.__name__ = overloads_of(value)[0].name()
    return function


# ---- calls answered by others


class _AnsweringFunction:
    """Stands in the place of torch's own function while another one answers, for calls of one thread."""

    def __init__(
        self, original: Callable[..., Any], choose: Callable[..., Any], answer: Answer, plain: set[str]
    ) -> None:
        self._original, self._choose, self._answer, self._plain = original, choose, answer, plain
        self._thread = threading.get_ident()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        overload = self._choose(*args, **kwargs) if threading.get_ident() == self._thread else None
        if overload is None or overload.name() in self._plain:
            return self._original(*args, **kwargs)
        plainly = functools.partial(self._plainly, overload.name(), args, kwargs)
        return self._answer(overload, OperatorCall(plainly, args, kwargs))

    def _plainly(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._plain.add(name)  # a trace calls the operator again
        try:
            return self._original(*args, **kwargs)
        finally:
            self._plain.discard(name)

    def __hash__(self) -> int:
        return hash(self._original)  # torch's operators are hashed by their function

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


@contextlib.contextmanager
def answered(answer: Answer) -> Iterator[None]:
    """Inside, every call of a custom operator from Python, by whatever name, is answered by `answer`."""
    plain: set[str] = set()
    own = NAMES["torch._ops.OpOverload._op"].attribute
    with contextlib.ExitStack() as stack:

        def answer_for(operator: Any, choose: Callable[..., Any]) -> None:
            if hasattr(operator, own):
                stand = _AnsweringFunction(getattr(operator, own), choose, answer, plain)
                stack.enter_context(patched(operator, own, stand))

        packets = {}
        for overload in custom_overloads():
            packets[id(overload.overloadpacket)] = overload.overloadpacket
            answer_for(overload, functools.partial(_this_overload, overload))
        for packet in packets.values():
            answer_for(packet, functools.partial(_overload_for, packet))
        yield


def _this_overload(overload: Any, *_args: Any, **_kwargs: Any) -> Any:
    return overload


def _overload_for(packet: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The overload that takes these arguments; None where torch has to say what is wrong with them."""
    names = packet.overloads()
    if len(names) == 1:
        return getattr(packet, names[0])
    resolve = lookup("torch._C._jit_resolve_packet")
    qualified = getattr(packet, names[0]).name().partition(".")[0]
    try:
        return None if resolve is None else getattr(packet, resolve(qualified, *args, **kwargs))
    except RuntimeError:
        return None
