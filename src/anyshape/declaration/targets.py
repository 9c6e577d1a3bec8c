"""What may be exported: a module, a bound method, a function; wrappers are taken off first."""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
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
        elif isinstance(inner := getattr(target, "_orig_mod", None), nn.Module):
            target = inner
        elif isinstance(inner := getattr(target, "_forward_module", None), nn.Module):
            target = inner
        elif callable(inner := getattr(target, "_torchdynamo_orig_callable", None)):
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
        closed = inspect.getclosurevars(function)
        values = [*closed.nonlocals.values(), *closed.globals.values()]
    else:
        owner = getattr(function, "__self__", function)
        values = list(getattr(owner, "__dict__", {}).values())
    found = {id(value): value for value in values if isinstance(value, nn.Module)}
    return list(found.values())


# ---- state: every call starts from the module as it was handed to us


class ModuleState:
    """The attributes, buffers and flags of a module at one moment; `restore` puts them back.

    Parameters are not copied: forward does not change them. Buffers and tensors kept as attributes are, since forward may.
    """

    def __init__(self, module: nn.Module) -> None:
        self._attributes = [(part, _shallow(vars(part))) for part in module.modules()]
        kept = {id(t): t for part in module.modules() for t in _tensors_of(part)}
        self._copies = [(tensor, tensor._version, tensor.detach().clone()) for tensor in kept.values()]

    def restore(self) -> None:
        for part, attributes in self._attributes:
            vars(part).clear()
            vars(part).update(_shallow(attributes))
        for index, (tensor, version, copy) in enumerate(self._copies):
            if tensor._version != version:
                with torch.no_grad():
                    tensor.copy_(copy)
                self._copies[index] = (tensor, tensor._version, copy)


def _shallow(attributes: dict[str, Any]) -> dict[str, Any]:
    """A copy in which the containers are copies too, so that what forward appends is forgotten."""
    return {k: v.copy() if isinstance(v, (dict, list, set)) else v for k, v in attributes.items()}


def _tensors_of(part: nn.Module) -> Iterator[torch.Tensor]:
    values = [*part._buffers.values(), *(v for v in vars(part).values() if not isinstance(v, nn.Parameter))]
    for value in values:
        if isinstance(value, torch.Tensor) and not value.is_inference() and value.layout is torch.strided:
            yield value


@contextlib.contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """Inside, the module is in eval mode; afterwards it, its state and every random generator are as before."""
    state = ModuleState(module)
    with _random_state():
        try:
            for part in module.modules():
                part.training = False
            yield
        finally:
            state.restore()


@contextlib.contextmanager
def _random_state() -> Iterator[None]:
    ours, theirs = random.getstate(), np.random.get_state()  # noqa: NPY002  the user's code may draw from it
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(ours)
            np.random.set_state(theirs)  # noqa: NPY002


def training_parts(module: nn.Module) -> list[str]:
    """The names of parts in training mode whose result depends on it."""
    kinds = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._NormBase)
    return [name for name, part in module.named_modules() if part.training and _depends_on_training(part, kinds)]


def _depends_on_training(part: nn.Module, kinds: tuple[type[nn.Module], ...]) -> bool:
    dropout = getattr(part, "dropout", 0)
    return isinstance(part, kinds) or (isinstance(dropout, float) and dropout > 0)
