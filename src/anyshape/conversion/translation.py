"""torch's translation of an exported program to ONNX, without what makes it slow."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import onnx_ir as ir
import torch

from anyshape.conversion.operators import numbers
from anyshape.conversion.operators.onnx_words import COMPLEX
from anyshape.conversion.operators.table import TRANSLATIONS
from anyshape.conversion.speed.stages_left_out import shortcuts
from anyshape.source.live_code import LOCK
from anyshape.torchkit.capture import quiet
from anyshape.torchkit.patches import patched, without_answers


@dataclasses.dataclass(frozen=True)
class Translation:
    """An ONNX model, the operators that were replaced by simpler ones in it, and those that forced torch to do so with
    the whole program.
    """

    model: ir.Model
    inlined: tuple[str, ...] = ()
    forced_by: tuple[str, ...] = ()


def translate_program(
    program: torch.export.ExportedProgram, opset: int, extra: Mapping[str, Any], *, inlining: bool = True
) -> Translation:
    """An ONNX model of the program; `extra` are further arguments of torch.onnx.export.

    With `inlining`, operators without a translation are replaced by themselves, where that can be translated.
    """
    options = {"optimize": True, **extra}
    try:
        with (
            LOCK, quiet(), torch.no_grad(), without_answers(), operators_built_once(),
            shortcuts(inlining=inlining) as simplified, numbers.gathered(),
        ):  # fmt: skip
            converted = torch.onnx.export(program, (), None, dynamo=True, opset_version=opset, verbose=False, **options)
    except Exception:
        if not simplified.inlined:
            raise
        return translate_program(program, opset, extra, inlining=False)
    assert converted is not None
    return Translation(converted.model, tuple(sorted(simplified.inlined)), tuple(sorted(simplified.forced_by)))


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
    if isinstance(operator, torch._ops.OpOverload) and operator.name() in TRANSLATIONS:
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
    for key, function in TRANSLATIONS.items():
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
