"""torch's translation of an exported program to ONNX, with its table of operators built once per process.

torch builds that table anew on every export, about half a second each time.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir
import torch

from anyshape._torch import numbers
from anyshape._torch.capture import quiet
from anyshape._torch.patching import without_answers
from anyshape._torch.shortcuts import shortcuts
from anyshape._torch.state import LOCK
from anyshape.conversion.translations import COMPLEX, TABLE

_REGISTRIES: dict[int | None, Any] = {}


def translate_program(program: torch.export.ExportedProgram, opset: int, extra: Mapping[str, Any]) -> ir.Model:
    """An ONNX model of the program; `extra` are further arguments of torch.onnx.export."""
    with (
        LOCK, quiet(), torch.no_grad(), without_answers(), _operators_built_once(), shortcuts(), numbers.gathered()
    ):  # fmt: skip
        converted = torch.onnx.export(
            program, (), None, dynamo=True, opset_version=opset, verbose=False, optimize=True, **extra
        )
    assert converted is not None
    return converted.model


def is_translated(operator: Any, opset: int) -> bool:
    """Whether torch or we know how to write an operator; the user's own translations are not asked."""
    try:
        from torch.onnx._internal.exporter import _constants as constants
        from torch.onnx._internal.exporter import _registration as registration
    except ImportError:
        return False
    wanted = max(opset, getattr(constants, "TORCHLIB_OPSET", 18))
    if wanted not in _REGISTRIES:
        with LOCK, quiet(), _operators_built_once():
            registration.ONNXRegistry.from_torchlib(wanted)
    if isinstance(operator, torch._ops.OpOverload) and operator.name() in TABLE:
        return True  # even if its library was imported after the table was built
    return wanted in _REGISTRIES and bool(_REGISTRIES[wanted].is_registered(operator))


def with_outputs(function: Any) -> Any:
    """An onnxscript function as torch can use it: one without a return annotation returns nothing, torch believes."""
    known = getattr(function, "op_signature", None)
    count = len(getattr(getattr(function, "function_ir", None), "outputs", ()))
    if known is None or known.outputs or not count:
        return function
    types = [ir.schemas.TypeConstraintParam.any_tensor(f"T_output_{index}") for index in range(count)]
    outputs = [ir.schemas.Parameter(f"output_{i}", t, required=True, variadic=False) for i, t in enumerate(types)]
    function._pt_onnx_signature = dataclasses.replace(known, outputs=outputs)

    # torch would infer the signature of the function itself anew
    @functools.wraps(function.function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


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
            _REGISTRIES[opset_version] = built
        _add_ours(_REGISTRIES[opset_version], registration)
        return _copied(_REGISTRIES[opset_version])

    registry_class.from_torchlib = staticmethod(from_memory)
    try:
        yield
    finally:
        registry_class.from_torchlib = build


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
