"""What may be exported: a module, a bound method, a function; wrappers are taken off first."""

from __future__ import annotations

import contextlib
import copy
import dis
import functools
import inspect
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
from torch import nn

from anyshape.errors import DeclarationError, first_line
from anyshape.sizes import budgets
from anyshape.sizes.spelling import argument, spelled


@dataclass(frozen=True)
class Target:
    """What is called, and the module that holds its parameters and state."""

    call: Callable[..., Any]
    module: nn.Module
    name: str
    source: Callable[..., Any]
    """The function whose `def` line stands for the whole target."""
    example: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    """The arguments and keywords of the call that an exported program was traced with."""

    @property
    def is_scripted(self) -> bool:
        """Whether it is TorchScript, which has no Python code any more: only TorchScript's own exporter reads it."""
        return isinstance(self.source, _SCRIPTED)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        if self.is_scripted:
            return _scripted_signature(self.source)
        call = self.source if self.call is self.module else self.call
        if isinstance(call, functools.partial) and isinstance(call.func, nn.Module):
            call = functools.partial(call.func.forward, *call.args, **call.keywords)
        try:
            return inspect.signature(call)
        except ValueError:
            raise DeclarationError(f"`{self.name}` has no Python signature: wrap it in a function") from None


def resolve_target(target: Any) -> Target:
    """The target without its wrappers; one sentence for what cannot be exported."""
    target = _unwrap(target)
    if isinstance(target, (torch.jit.ScriptModule, *_SCRIPTED)):
        return _scripted_target(target)
    if isinstance(target, torch.export.ExportedProgram):
        module = target.module()
        return Target(module, module, "program", module.forward, target.example_inputs)
    if isinstance(target, nn.Module):
        _refuse_what_cannot_run(target)
        return Target(target, target, type(target).__name__, target.forward)
    if inspect.ismethod(target) and isinstance(target.__self__, nn.Module):
        _refuse_what_cannot_run(target.__self__)
        return Target(target, target.__self__, f"{type(target.__self__).__name__}.{target.__name__}", target)
    if isinstance(target, type):
        raise DeclarationError(f"`{target.__name__}` is a class: pass an instance of it")
    if callable(target):
        return Target(target, _Holder(target, _modules_of(target)), _name_of(target), target)
    if isinstance(target, (str, os.PathLike)) and Path(target).is_dir():
        raise DeclarationError(
            f"{str(target)!r} is a folder: pass a module; a checkpoint's folder is exported by "
            "anyshape.checkpoints.export_checkpoint"
        )
    if isinstance(target, Mapping):
        raise DeclarationError(
            "the model is a dict, as a state dict is: pass the module, and load the state dict into it"
        )
    shown = repr(target) if len(repr(target)) <= budgets.LONGEST_INSPECTED_TEXT else "the model"
    raise DeclarationError(f"{shown} is a {type(target).__name__}: pass a module, a bound method or a function")


_SCRIPTED = (torch.jit.ScriptFunction, torch.ScriptMethod)


def _scripted_target(target: Any) -> Target:
    if isinstance(target, torch.jit.ScriptFunction):
        return Target(target, _Holder(target, []), str(target.name), target)
    if isinstance(target, torch.ScriptMethod):
        raise DeclarationError(
            f"`{target.name}` is a method of a TorchScript module, of which `forward` is exported: pass the module"
        )
    _refuse_what_cannot_run(target)
    name = target.original_name
    if not hasattr(target, "forward"):
        raise DeclarationError(f"`{name}` is TorchScript without a `forward`, which is what is exported")
    return Target(target, target, name, target.forward)


def _scripted_signature(function: Any) -> inspect.Signature:
    """What TorchScript kept of a Python signature: names, defaults, and what comes by name alone."""
    kinds = inspect.Parameter
    arguments = function.schema.arguments[1 if isinstance(function, torch.ScriptMethod) else 0 :]
    return inspect.Signature(
        [
            inspect.Parameter(
                argument.name,
                kinds.KEYWORD_ONLY if argument.kwarg_only else kinds.POSITIONAL_OR_KEYWORD,
                default=argument.default_value if argument.has_default_value() else kinds.empty,
            )
            for argument in arguments
        ]
    )


_QUANTISED = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized")


def _refuse_what_cannot_run(module: nn.Module) -> None:
    """One sentence for modules without values, and for those whose numbers no exporter reads."""
    named = f"of `{type(module).__name__}`"
    for name, tensor in itertools.chain(module.named_parameters(), module.named_buffers()):
        if isinstance(tensor, nn.parameter.UninitializedParameter | nn.parameter.UninitializedBuffer):
            raise DeclarationError(f"`{name}` {named} has no shape yet: run the model once before it is exported")
        if tensor.device.type == "meta" and not hasattr(module, "_hf_hook"):  # accelerate loads values when it runs
            raise DeclarationError(f"`{name}` {named} is on `meta`, which holds no values: load the weights first")
    for name, part in module.named_modules():
        if type(part).__module__.startswith(_QUANTISED):
            raise DeclarationError(
                f"`{name or type(part).__name__}` {named} is quantised, in numbers that no exporter reads: "
                "export the float model, and quantise the file"
            )


def _without_partial(function: Any) -> Any:
    return _without_partial(function.func) if isinstance(function, functools.partial) else function


def _name_of(function: Any) -> str:
    inner = _without_partial(function)
    return str(getattr(inner, "__name__", type(inner).__name__))


_WRAPPED_IN = ("_orig_mod", "_forward_module", "_torchdynamo_orig_callable")
"""Where torch.compile, Lightning's Fabric and torch.compile of a function keep what they wrap."""


def _unwrap(target: Any) -> Any:
    """Take off torch.compile, DataParallel, DistributedDataParallel, Lightning's and PEFT's wrappers."""
    for _ in range(8):
        if isinstance(target, nn.parallel.DataParallel | nn.parallel.DistributedDataParallel):
            target = target.module
            continue
        if isinstance(target, functools.partial):
            return functools.partial(_unwrap(target.func), *target.args, **target.keywords)
        if hasattr(target, "peft_config") and callable(base := getattr(target, "get_base_model", None)):
            return base()
        inner = next((i for key in _WRAPPED_IN if callable(i := getattr(target, key, None))), None)
        if inner is None:
            break
        target = inner
    return target


class _Holder(nn.Module):
    """Holds the modules that a function uses, so that their parameters are found, and the function with its file."""

    def __init__(self, function: Any, modules: list[nn.Module]) -> None:
        super().__init__()
        self.function = function
        self.held = nn.ModuleList(modules)
        self.train(any(module.training for module in modules))


def _modules_of(function: Any) -> list[nn.Module]:
    """The modules that a function reaches: bound, in its closure, on its object, or among the globals that it reads."""
    home = getattr(inspect.unwrap(_without_partial(function)), "__globals__", None)
    found: dict[int, nn.Module] = {}
    level, seen = [function], set()
    for _ in range(budgets.FURTHEST_WRAPPER):
        new = {id(value): value for value in level if id(value) not in seen}
        seen |= set(new)
        found |= {key: value for key, value in new.items() if isinstance(value, nn.Module)}
        level = [part for key, value in new.items() if key not in found for part in _reached_from(value, home)]
    return list(found.values())


def _reached_from(value: Any, home: dict[str, Any] | None) -> list[Any]:
    """One step further; globals are read for functions of one file alone, or all that is imported would be searched."""
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if inspect.ismethod(value):
        return [value.__self__, value.__func__]
    if inspect.isfunction(value):
        names = _globals_read(value.__code__) if value.__globals__ is home else []
        return [*_closed_over(value), *(value.__globals__.get(name) for name in names)]
    if isinstance(value, (list, tuple, dict)):
        parts = list(value.values() if isinstance(value, dict) else value)
        return parts if len(parts) <= budgets.LONGEST_CONTAINER else []
    is_plain = hasattr(value, "__dict__") and not isinstance(value, (type, ModuleType))
    return list(vars(value).values()) if is_plain else []


def _closed_over(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a name that is not bound yet
            yield cell.cell_contents


def _globals_read(code: CodeType) -> list[str]:
    """The global names that a function loads, those of its inner functions included."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _globals_read(part)]
    return [str(step.argval) for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"] + inner


_DEPEND_ON_TRAINING = (
    nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.RReLU,
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm,
)  # fmt: skip


def training_parts(module: nn.Module) -> list[str]:
    """The names of parts in training mode whose result depends on it."""
    return [name for name, part in module.named_modules() if part.training and _depends_on_training(part)]


def _depends_on_training(part: nn.Module) -> bool:
    dropout = getattr(part, "dropout", 0)
    return isinstance(part, _DEPEND_ON_TRAINING) or (isinstance(dropout, float) and dropout > 0)


# ---- `dtype=`: a copy of the module in another type


def as_dtype(dtype: Any) -> torch.dtype:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        kinds = spelled("torch.float16 or 'bfloat16'", "float16 or bfloat16")
        raise DeclarationError(f"{argument('dtype')} is {dtype!r}: give a floating type such as {kinds}")
    return found


def converted(target: Target, dtype: torch.dtype) -> Target:
    """A copy of the module in another type; the user's own is not touched."""
    if target.call is not target.module and not inspect.ismethod(target.call):
        raise DeclarationError(f"{spelled('dtype=', '--dtype')} converts a module or its method, not a function")
    try:
        twin = copy.deepcopy(target.module).to(dtype)
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        said = spelled("dtype=", "--dtype")
        raise DeclarationError(f"{said} needs a copy of the model, which cannot be copied ({reason})") from error
    return resolve_target(twin if target.call is target.module else getattr(twin, str(target.call.__name__)))
