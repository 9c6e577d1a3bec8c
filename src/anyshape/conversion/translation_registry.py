"""torch's table of the operators that it can translate, with ours in it; built once per process.

torch builds that table anew on every export, about half a second each time.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from anyshape.conversion.operators.translations import COMPLEX, TABLE
from anyshape.torchkit.capture import quiet
from anyshape.torchkit.patches import patched
from anyshape.torchkit.state import LOCK

_REGISTRIES: dict[int | None, Any] = {}


def is_translated(operator: Any, opset: int) -> bool:
    """Whether torch or we know how to write an operator; the user's own translations are not asked."""
    try:
        from torch.onnx._internal.exporter import _constants as constants
        from torch.onnx._internal.exporter import _registration as registration
    except ImportError:
        return False
    wanted = max(opset, getattr(constants, "TORCHLIB_OPSET", 18))
    if wanted not in _REGISTRIES:
        with LOCK, quiet(), operators_built_once():
            registration.ONNXRegistry.from_torchlib(wanted)
    if isinstance(operator, torch._ops.OpOverload) and operator.name() in TABLE:
        return True  # even if its library was imported after the table was built
    return wanted in _REGISTRIES and bool(_REGISTRIES[wanted].is_registered(operator))


@contextlib.contextmanager
def operators_built_once() -> Iterator[None]:
    """Serve torch's table of operators from memory; each export gets its own copy, since it may add to it."""
    try:
        from torch.onnx._internal.exporter import _registration as registration

        registry_class: Any = registration.ONNXRegistry
        build = registry_class.from_torchlib
    except (ImportError, AttributeError):
        yield
        return

    def from_memory(opset_version: int | None = None) -> Any:
        if opset_version not in _REGISTRIES:
            with _unread():
                built = build() if opset_version is None else build(opset_version=opset_version)
            _REGISTRIES[opset_version] = built
        _add_ours(_REGISTRIES[opset_version], registration)
        return _copied(_REGISTRIES[opset_version])

    registry_class.from_torchlib = staticmethod(from_memory)
    try:
        yield
    finally:
        registry_class.from_torchlib = build


@contextlib.contextmanager
def _unread() -> Iterator[None]:
    """Inside, the table is filled without reading the source of each of its functions, which takes most of the time.

    torch infers the signature of a function when it is used, if it is not there; the domain that onnxscript asks for is
    used by nobody.
    """
    from torch.onnx._internal.exporter import _registration as registration

    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, AttributeError):
            from onnxscript._internal.values import TracedOnnxFunction

            stack.enter_context(patched(TracedOnnxFunction, "function_ir", SimpleNamespace(domain="")))
        known: Any = getattr(registration, "OnnxDecompMeta", None)
        if "skip_signature_inference" in getattr(known, "__dataclass_fields__", ()):
            unread = partial(known, skip_signature_inference=True)
            stack.enter_context(patched(registration, "OnnxDecompMeta", unread))
        yield


def _add_ours(registry: Any, registration: Any) -> None:
    """Our translations stand before torch's, and after the user's, which are added later.

    What is there already is left; a library may have defined its operators since.
    """
    for key, function in TABLE.items():
        name = key.removeprefix(COMPLEX)
        target = _operator(name)
        if target is None or any(known.onnx_function is function for known in registry.get_decomps(target)):
            continue
        meta = registration.OnnxDecompMeta(
            function, target, None, is_custom=True, is_complex=key != name, skip_signature_inference=True
        )
        registry._register(target, meta)


def _operator(name: str) -> Any:
    """`aten::cdist`, `aten::sub.Tensor`, or `_operator::floordiv` as torch's graphs hold it."""
    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace, None), operator, None)
    if packet is None:  # a library may call its operators by its own name
        return getattr(sys.modules.get(namespace), rest, None)
    return getattr(packet, overload or "default", None)


def _copied(registry: Any) -> Any:
    """A copy whose lists may grow without touching the original."""
    twin = copy.copy(registry)
    for name, value in vars(registry).items():
        if isinstance(value, dict):
            setattr(twin, name, {k: list(v) if isinstance(v, list) else v for k, v in value.items()})
    return twin
