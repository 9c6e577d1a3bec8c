"""torch's translation of an exported program to ONNX, with its table of operators built once per process.

torch builds that table anew on every export, about half a second each time.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir
import torch

from anyshape._torch.capture import quiet
from anyshape._torch.state import LOCK
from anyshape.conversion.translations import TABLE

_REGISTRIES: dict[int | None, Any] = {}


def translate_program(program: torch.export.ExportedProgram, opset: int, extra: Mapping[str, Any]) -> ir.Model:
    """An ONNX model of the program; `extra` are further arguments of torch.onnx.export."""
    with LOCK, quiet(), torch.no_grad(), _operators_built_once():
        converted = torch.onnx.export(
            program, (), None, dynamo=True, opset_version=opset, verbose=False, optimize=True, **extra
        )
    assert converted is not None
    return converted.model


@contextlib.contextmanager
def _operators_built_once() -> Iterator[None]:
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
            built = build() if opset_version is None else build(opset_version=opset_version)
            _add_ours(built, registration)
            _REGISTRIES[opset_version] = built
        return _copied(_REGISTRIES[opset_version])

    registry_class.from_torchlib = staticmethod(from_memory)
    try:
        yield
    finally:
        registry_class.from_torchlib = build


def _add_ours(registry: Any, registration: Any) -> None:
    """Our translations stand before torch's, and after the user's, which are added later."""
    for name, function in TABLE.items():
        target = _operator(name)
        if target is not None:
            meta = registration.OnnxDecompMeta(function, target, None, is_custom=True, skip_signature_inference=True)
            registry._register(target, meta)


def _operator(name: str) -> Any:
    """`aten::cdist`, `aten::sub.Tensor`, `math::ceil` or `_operator::floordiv` as torch's graphs hold it."""
    namespace, _, rest = name.partition("::")
    if namespace in ("_operator", "math", "builtins", "torch"):
        return getattr(importlib.import_module(namespace), rest, None)
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return getattr(packet, overload or "default", None)


def _copied(registry: Any) -> Any:
    """A copy whose lists may grow without touching the original."""
    twin = copy.copy(registry)
    for name, value in vars(registry).items():
        if isinstance(value, dict):
            setattr(twin, name, {k: list(v) if isinstance(v, list) else v for k, v in value.items()})
    return twin
