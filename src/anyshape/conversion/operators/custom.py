"""A custom operator with a Python implementation is traced through it.

Recognised: every call, from Python, of an operator of the user's (`torch.library.custom_op`, `Library.define`) that
nobody translates. Put there: the Python function that eager runs for it, on the tensors of the trace, so that the
operators inside are traced; no fake kernel is needed. The same, because eager runs that very function. An operator with
a translation stays a single node; one with neither is named, with the user's line.

A kernel in Python may be called on the tensors of a trace, one in C++ may not. torch keeps the functions that
`Library.impl` was given on the other side of its dispatcher; they are met on the way in, before their first line runs.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.translation import is_translated
from anyshape.errors import AnyshapeError
from anyshape.results.attempt import UntranslatedOperatorError
from anyshape.source.spans import Span, span_of_recorded_stack
from anyshape.torchkit import custom_operators
from anyshape.torchkit.private_names import attribute, lookup, pytree
from anyshape.torchkit.reasons import is_known, reason_of


def _untranslated_error(
    overload: Any, span: Span | None, why: str, *, shapeless: bool = False
) -> UntranslatedOperatorError:
    arguments = custom_operators.written_arguments(overload)
    return UntranslatedOperatorError(overload.name(), str(overload), arguments, span, why, shapeless=shapeless)


_NOT_PYTHON = "its implementation is not in Python, so it cannot be traced"


class CustomOperators:
    """The custom operators of one trace; `table` holds the user's translations."""

    def __init__(self, table: Mapping[Any, Any], opset: int) -> None:
        self._translated = {overload.name() for key in table for overload in custom_operators.overloads_of(key)}
        self._opset = opset
        self._known: dict[str, bool] = {}
        self._shapeless: set[str] = set()
        self._calls: dict[str, Span] = {}

    @property
    def repair(self) -> Repair:
        return Repair("custom operators", self._traced_through, always=True)

    @contextlib.contextmanager
    def _traced_through(self, used: Used) -> Iterator[None]:
        def answer(overload: Any, call: custom_operators.OperatorCall) -> Any:
            return self._answer_to(overload, call, used)

        kept = [overload for overload in custom_operators.custom_overloads() if self._is_translated(overload)]
        shapeless = [overload for overload in kept if not _has_shapes(overload)]
        self._shapeless = {overload.name() for overload in shapeless}
        with custom_operators.answered(answer), _shaped_by_implementation(shapeless):
            yield

    def _is_translated(self, overload: Any) -> bool:
        name = overload.name()
        if name not in self._known:
            self._known[name] = name in self._translated or is_translated(overload, self._opset)
        return self._known[name]

    def _answer_to(self, overload: Any, call: custom_operators.OperatorCall, used: Used) -> Any:
        if call.span is not None:
            self._calls.setdefault(overload.name(), call.span)
        if self._is_translated(overload):
            return self._result_of_kept(overload, call)
        run = implementation(overload, call.args, call.kwargs)
        if run is None and custom_operators.decomposes(overload):
            return call.plainly()
        try:
            result = call.plainly() if run is None else run()
        except AnyshapeError:
            raise  # an operator inside has no translation, or there are too many paths through it
        except Exception as error:
            if run is not None and is_known(error):
                raise  # a decision on sizes or values, which has findings of its own
            why = f"its Python implementation cannot be traced: {reason_of(error)}" if run else _NOT_PYTHON
            raise _untranslated_error(overload, call.span, why) from error
        if run is not None:
            used(f"{overload.name()}: traced through its Python implementation")
        return result

    def _result_of_kept(self, overload: Any, call: custom_operators.OperatorCall) -> Any:
        """An operator that is translated as a whole; for a trace, its shapes are enough."""
        try:
            return call.plainly()
        except Exception as error:
            if overload.name() not in self._shapeless or is_known(error):
                raise
            why = f"on tensors without values it fails: {reason_of(error)}"
            raise _untranslated_error(overload, call.span, why, shapeless=True) from error

    def refuse_untranslated(self, program: torch.export.ExportedProgram) -> None:
        """Name an operator that is left in the program although nobody can translate it."""
        parts = [part for part in program.graph_module.modules() if isinstance(part, torch.fx.GraphModule)]
        for node in itertools.chain.from_iterable(part.graph.nodes for part in parts):
            target = node.target
            if custom_operators.is_custom(target) and not self._is_written(target):
                span = self._calls.get(target.name()) or span_of_recorded_stack(node.meta.get("stack_trace") or "")
                raise _untranslated_error(target, span, _NOT_PYTHON)

    def _is_written(self, overload: Any) -> bool:
        return self._is_translated(overload) or custom_operators.decomposes(overload)


# ---- the Python function that eager runs


def implementation(overload: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[], Any] | None:
    """The Python function that eager runs for this call, ready to be run; None for an operator that has none."""
    device = _device_of(args, kwargs)
    definition = _definitions().get(overload.name())
    if definition is not None:
        functions = attribute(definition, "torch._library.custom_ops.CustomOpDef._backend_fns", {})
        function = functions.get(device) or functions.get(None)
    else:
        key = _python_key(overload, device)
        function = None if key is None else _registered_function(overload, key, args, kwargs)
        if key is not None and key.startswith("Autograd") and function is not None:
            function = _while_not_running(overload, function)
    return None if function is None else functools.partial(_result_of, overload, function, args, kwargs)


def has_implementation(overload: Any) -> bool:
    """Whether any kernel that computes the operator is in Python."""
    name = overload.name()
    known = {key.rpartition("/")[0] for key in _registrations() if key.rpartition("/")[2] not in _COMPUTE_NOTHING}
    return name in _definitions() or name.replace("::", "/", 1) in known


_COMPUTE_NOTHING = ("Meta", "BackendSelect", "ADInplaceOrView", "FuncTorchBatched", "Functionalize", "Python")
_ANY_DEVICE = (
    "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd", "",
)  # fmt: skip


def _registrations() -> set[str]:
    """`namespace/operator.overload/key` for every kernel that was registered from Python."""
    return set(lookup("torch.library._impls") or ())


def _definitions() -> Mapping[str, Any]:
    return lookup("torch._library.custom_ops.OPDEFS") or {}


def _device_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    leaves = pytree.tree_leaves((args, kwargs))
    tensors = [leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor)]
    devices = tensors or [leaf for leaf in leaves if isinstance(leaf, torch.device)]
    return devices[0].type if devices else "cpu"


def _python_key(overload: Any, device: str) -> str | None:
    """The dispatch key of the kernel that computes this operator on a device, if that kernel is in Python."""
    name, known = overload.name(), _registrations()
    key_for_device = lookup("torch._C._dispatch_key_for_device")
    is_fallthrough = lookup("torch._C._dispatch_kernel_for_dispatch_key_is_fallthrough")
    if key_for_device is None or is_fallthrough is None:
        return None
    backend = key_for_device(device)
    # below autograd first: a kernel for autograd calls the operator again for its result
    for key in (backend, *_ANY_DEVICE, f"Autograd{backend}", "Autograd"):
        if f"{name.replace('::', '/', 1)}/{key}" in known:
            meant = key or "CompositeImplicitAutograd"
            if not is_fallthrough(name, meant):
                return f"Autograd{backend}" if meant == "Autograd" else meant
    return None


_RUNNING: set[str] = set()
"""Operators whose kernel for autograd is running: it calls the operator again, for the kernel below."""


def _while_not_running(overload: Any, function: Callable[..., Any]) -> Callable[..., Any] | None:
    name = overload.name()
    if name in _RUNNING:
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        _RUNNING.add(name)
        try:
            return function(*args, **kwargs)
        finally:
            _RUNNING.discard(name)

    return run


def _result_of(overload: Any, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The function on arguments as the dispatcher hands them over, its result as the dispatcher hands it back."""
    positional, keywords = _handed_over(overload._schema, args, kwargs)
    result = function(*positional, **keywords)
    returns = overload._schema.returns
    if len(returns) > 1:
        return tuple(result)
    return list(result) if isinstance(result, tuple) and len(returns) == 1 else result


def _handed_over(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional where the schema says so, and without what equals the schema's default at the end."""
    plain = [argument for argument in schema.arguments if not argument.kwarg_only]
    given = {argument.name: value for argument, value in zip(plain, args, strict=False)} | dict(kwargs)
    keywords = {a.name: given[a.name] for a in schema.arguments if a.kwarg_only and a.name in given}
    while plain and plain[-1].has_default_value() and _is_default(plain[-1], given):
        plain.pop()
    return [given.get(argument.name, argument.default_value) for argument in plain], keywords


def _is_default(argument: Any, given: Mapping[str, Any]) -> bool:
    if argument.name not in given:
        return True
    value, default = given[argument.name], argument.default_value
    return type(value) is type(default) and not _is_symbolic(value) and bool(value == default)


def _is_symbolic(value: Any) -> bool:
    symbolic = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)
    return any(isinstance(leaf, symbolic) for leaf in pytree.tree_leaves(value))


# ---- the function on the other side of the dispatcher


class _MetError(Exception):
    """Raised on the way into a kernel: it was met, and is not to run."""


def _registered_function(
    overload: Any, key: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Callable[..., Any] | None:
    """The function that was registered; where it cannot be told, the way to it through the dispatcher.

    That way makes a number of every size that the schema calls `int`, so it is the second best.
    """
    through = _through_dispatcher(overload, key)
    if through is None:
        return None
    plain = pytree.tree_map(_as_number, (list(args), dict(kwargs)))
    met = _first_python_function(functools.partial(through, *plain[0], **plain[1]))
    if met is None:
        return through
    code, variables = met
    positional, keywords = _handed_over(overload._schema, *plain)
    functions = [f for f in gc.get_referrers(code) if isinstance(f, FunctionType) and _closes_over(f, variables)]
    if len(functions) != 1 or not _has_received(code, variables, positional, keywords):
        return through
    return functions[0]


def _through_dispatcher(overload: Any, key: str) -> Callable[..., Any] | None:
    """The way through the dispatcher; None where torch has moved it."""
    keys, key_set = lookup("torch._C.DispatchKey"), lookup("torch._C.DispatchKeySet")
    by_key = attribute(overload, "torch._ops.OpOverload._op_dk")
    kernel_of = lookup("torch._C._dispatch_get_computed_kernel_for_dispatch_key")
    if keys is None or (by_key if key.startswith("Composite") else key_set and kernel_of) is None:
        return None
    if key.startswith("Composite"):  # stands for many keys, and is called by its own name
        return functools.partial(by_key, getattr(keys, key))
    return functools.partial(kernel_of(overload.name(), key).call_boxed, key_set(getattr(keys, key)))


def _as_number(value: Any) -> Any:
    return {torch.SymInt: 1, torch.SymFloat: 1.0, torch.SymBool: True}.get(type(value), value)


def _first_python_function(call: Callable[[], Any]) -> tuple[CodeType, dict[str, Any]] | None:
    """The code of the first Python function that a call enters, and its variables there."""
    met: list[tuple[CodeType, dict[str, Any]]] = []

    def meet(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            met.append((frame.f_code, dict(frame.f_locals)))
            raise _MetError

    before = sys.getprofile()
    with (lookup("torch._C.DisableTorchFunction") or contextlib.nullcontext)():
        sys.setprofile(meet)
        try:
            call()
        except Exception:  # noqa: BLE001, S110  ours, or the dispatcher's own complaint: then nothing was met
            pass
        finally:
            sys.setprofile(before)
    return met[0] if met else None


def _closes_over(function: FunctionType, variables: Mapping[str, Any]) -> bool:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return all(variables.get(name, cell) is cell.cell_contents for name, cell in cells)


def _has_received(code: CodeType, variables: Mapping[str, Any], positional: Sequence[Any], keywords: Any) -> bool:
    """Whether the function was called with the operator's own arguments, not with a key set or a bound object."""
    named = [variables.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & 0x04:  # *args
        named += variables.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], ())
    pairs = zip(positional, named, strict=False)
    enough = len(named) >= len(positional) and bool(positional or keywords)
    return enough and all(_is_same_argument(given, received) for given, received in pairs)


def _is_same_argument(given: Any, received: Any) -> bool:
    if isinstance(given, (list, tuple)) and isinstance(received, (list, tuple)):
        return len(given) == len(received) and all(map(_is_same_argument, given, received))
    return given is received or (not _is_symbolic((given, received)) and bool(given == received))


# ---- shapes for an operator that says nothing about them


@contextlib.contextmanager
def _shaped_by_implementation(overloads: Sequence[Any]) -> Iterator[None]:
    """Inside, an operator without a fake kernel has the shapes that its Python function gives to fake tensors."""
    registry, make_kernel = lookup("torch._library.simple_registry.singleton"), lookup("torch._library.utils.Kernel")
    with contextlib.ExitStack() as stack:
        for overload in overloads if registry is not None and make_kernel is not None else ():
            if not has_implementation(overload):
                continue
            kernels = registry.find(overload.name()).fake_impl.kernels
            kernel = make_kernel(functools.partial(_result_for_shapes, overload), "anyshape")
            kernels.append(kernel)
            stack.callback(kernels.remove, kernel)
        yield


def _result_for_shapes(overload: Any, *args: Any, **kwargs: Any) -> Any:
    run = implementation(overload, args, kwargs)
    if run is None:
        raise NotImplementedError(f"{overload.name()} has no kernel for fake tensors")
    return run()


def _has_shapes(overload: Any) -> bool:
    """Whether an operator says itself what shapes its results have."""
    definition = _definitions().get(overload.name())
    if definition is not None:
        return attribute(definition, "torch._library.custom_ops.CustomOpDef._abstract_fn") is not None
    registry, keys = lookup("torch._library.simple_registry.singleton"), lookup("torch._C.DispatchKey")
    known = registry is not None and registry.find(overload.name()).fake_impl.kernel is not None
    return known or (keys is not None and overload.has_kernel_for_dispatch_key(keys.Meta))
