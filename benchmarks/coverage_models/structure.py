"""Calls and results as flat tensors, independent of anyshape: the judge must not share its mistakes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

_BOTH = ("self_attention_cache", "cross_attention_cache")
"""The parts of an encoder-decoder's cache."""


def is_cache(value: Any) -> bool:
    """A cache of transformers: layers with keys and values."""
    return isinstance(getattr(value, "layers", None), list) and not isinstance(value, nn.Module)


def children(value: Any) -> dict[str, Any] | None:
    """The parts of a container by name, or None for a leaf."""
    if is_cache(value):
        pairs = [(i, layer) for i, layer in enumerate(value.layers)]
        return {f"{i}.{part}": getattr(layer, part + "s") for i, layer in pairs for part in ("key", "value")}
    if hasattr(value, _BOTH[0]):
        return {key: getattr(value, key) for key in _BOTH}
    if isinstance(value, Mapping):
        return {str(key): part for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return {str(index): part for index, part in enumerate(value)}
    return None


def flatten(value: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """All tensors in order with their dotted names; what is no tensor is left out."""
    if isinstance(value, torch.Tensor):
        yield name, value
        return
    for key, part in (children(value) or {}).items():
        yield from flatten(part, f"{name}.{key}" if name else key)


def rebuild(value: Any, tensors: Iterator[torch.Tensor]) -> Any:
    """The same structure with other tensors."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if is_cache(value):
        twin = type(value)()
        for index in range(len(value.layers)):
            twin.update(next(tensors), next(tensors), index)
        return twin
    if hasattr(value, _BOTH[0]):
        return type(value)(*(rebuild(getattr(value, key), tensors) for key in _BOTH))
    if isinstance(value, Mapping):
        return {key: rebuild(part, tensors) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuild(part, tensors) for part in value))
    if isinstance(value, (list, tuple)):
        return type(value)(rebuild(part, tensors) for part in value)
    return value


def named_call(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, torch.Tensor]]:
    """The tensors of a call, named after the parameters of forward."""
    signature = inspect.signature(model.forward)
    named: dict[str, Any] = {}
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        is_rest = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        named |= value if is_rest else {name: value}
    return list(flatten(named))


def matches(key: str, name: str) -> bool:
    """Whether a key of `dims` means this leaf: its own name, a pattern, or a container's name."""
    return fnmatchcase(name, key) or name.startswith(key + ".")
