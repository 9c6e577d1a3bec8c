"""What may be exported: a module, a bound method, a function; wrappers are taken off first."""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch
from torch import nn

from anyshape.errors import DeclarationError


@dataclass(frozen=True)
class Target:
    """What is called, and the module that holds its parameters and state."""

    call: Callable[..., Any]
    module: nn.Module
    name: str
    source: Callable[..., Any]
    """The function whose `def` line stands for the whole target."""

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.source if self.call is self.module else self.call)


def resolve_target(target: Any) -> Target:
    """The target without its wrappers; one sentence for what cannot be exported."""
    target = _unwrap(target)
    if isinstance(target, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        raise DeclarationError(
            f"the model is a {type(target).__name__}: pass the Python module that was scripted, PyTorch cannot trace a compiled one"
        )
    if isinstance(target, torch.export.ExportedProgram):
        module = target.module()
        return Target(module, module, "program", module.forward)
    if isinstance(target, nn.Module):
        return Target(target, target, type(target).__name__, target.forward)
    if inspect.ismethod(target) and isinstance(target.__self__, nn.Module):
        return Target(target, target.__self__, f"{type(target.__self__).__name__}.{target.__name__}", target)
    if isinstance(target, type):
        raise DeclarationError(f"`{target.__name__}` is a class: pass an instance of it")
    if callable(target):
        return Target(target, _Holder(_modules_of(target)), getattr(target, "__name__", type(target).__name__), target)
    raise DeclarationError(f"{target!r} is a {type(target).__name__}: pass a module, a bound method or a function")


def _unwrap(target: Any) -> Any:
    """Take off torch.compile, DataParallel, DistributedDataParallel, Lightning's and Accelerate's wrappers."""
    for _ in range(8):
        if isinstance(target, nn.parallel.DataParallel | nn.parallel.DistributedDataParallel):
            target = target.module
        elif isinstance(inner := getattr(target, "_orig_mod", None), nn.Module) or isinstance(inner := getattr(target, "_forward_module", None), nn.Module) or callable(inner := getattr(target, "_torchdynamo_orig_callable", None)):
            target = inner
        else:
            break
    return target


class _Holder(nn.Module):
    """Holds the modules that a function uses, so that their parameters are found."""

    def __init__(self, modules: list[nn.Module]) -> None:
        super().__init__()
        self.held = nn.ModuleList(modules)
        self.train(any(module.training for module in modules))


def _modules_of(function: Any) -> list[nn.Module]:
    """The modules that a function reaches: bound, in its closure, among its globals or on its object."""
    if isinstance(function, functools.partial):
        values = [*function.args, *function.keywords.values(), *_modules_of(function.func)]
    elif inspect.isfunction(function):
        cells = [cell.cell_contents for cell in function.__closure__ or () if cell.cell_contents is not None]
        values = [*cells, *(function.__globals__.get(name) for name in _globals_read(function.__code__))]
    else:
        owner = getattr(function, "__self__", function)
        values = list(getattr(owner, "__dict__", {}).values())
    found = {id(value): value for value in values if isinstance(value, nn.Module)}
    return list(found.values())


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
