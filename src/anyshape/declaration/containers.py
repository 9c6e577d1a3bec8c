"""Containers of tensors: how to take one apart into named parts, and how to put it together again.

None needs to be registered: what a container is stands in one table below.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from anyshape.errors import DeclarationError
from anyshape.sizes import budgets

Join = Callable[[dict[str, Any]], Any]


def is_cache(value: Any) -> bool:
    """A transformers cache: layers that hold keys and values as attributes, not as a dict's methods."""
    layers = getattr(value, "layers", None)
    return isinstance(layers, list) and all(
        hasattr(layer, "values") and not callable(getattr(layer, "keys", callable)) for layer in layers
    )


_COUNTED = "cumulative_length"
"""What a layer of fixed room has been filled with so far: a tensor, and an input like the room itself."""


def _split_cache(cache: Any) -> tuple[dict[str, Any], Join]:
    parts: dict[str, Any] = {}
    for index, layer in enumerate(cache.layers):
        parts |= {f"{index}.key": layer.keys, f"{index}.value": layer.values}
        if isinstance(getattr(layer, _COUNTED, None), torch.Tensor):
            parts[f"{index}.{_COUNTED}"] = getattr(layer, _COUNTED)

    def join(new: dict[str, Any]) -> Any:
        twin = copy.copy(cache)
        twin.layers = [_joined_layer(layer, i, new) for i, layer in enumerate(cache.layers)]
        return twin

    return parts, join


def _joined_layer(layer: Any, index: int, new: dict[str, Any]) -> Any:
    twin = copy.copy(layer)
    twin.keys, twin.values = keys, _ = new[f"{index}.key"], new[f"{index}.value"]
    if (counted := new.get(f"{index}.{_COUNTED}")) is not None:
        setattr(twin, _COUNTED, counted)
    if keys is not None:
        _follow(twin, layer, "batch_size", 0)
        _follow(twin, layer, "max_cache_len", -2)
        _follow(twin, layer, _COUNTED, -2)  # a sliding window counts what it has seen
    return twin


def _follow(twin: Any, layer: Any, name: str, axis: int) -> None:
    """A number that was the size of an axis is the size of that axis again."""
    number = getattr(layer, name, None)
    if isinstance(number, int) and number == layer.keys.shape[axis]:
        setattr(twin, name, twin.keys.shape[axis])


def _split_mapping(value: Any) -> tuple[dict[str, Any], Join]:
    keys = {str(key): key for key in value}
    if len(keys) != len(value):
        raise DeclarationError(f"the keys {list(value)} of a dict are the same as text: rename one")

    def join(new: dict[str, Any]) -> Any:
        twin = copy.copy(value)
        for name, key in keys.items():
            twin[key] = new[name]
        return twin

    return {name: value[key] for name, key in keys.items()}, join


def _split_named_tuple(value: Any) -> tuple[dict[str, Any], Join]:
    return dict(zip(value._fields, value, strict=True)), lambda new: type(value)._make(new.values())


def _split_sequence(value: Any) -> tuple[dict[str, Any], Join]:
    return {str(i): part for i, part in enumerate(value)}, lambda new: type(value)(new.values())


def _split_dataclass(value: Any) -> tuple[dict[str, Any], Join]:
    return _split_attributes(value, [field.name for field in dataclasses.fields(value)])


def split_object(value: Any) -> tuple[dict[str, Any], Join]:
    return _split_attributes(value, list(vars(value)))


def _split_attributes(value: Any, names: list[str]) -> tuple[dict[str, Any], Join]:
    def join(new: dict[str, Any]) -> Any:
        twin = copy.copy(value)
        for name, part in new.items():
            object.__setattr__(twin, name, part)  # a frozen dataclass, too
        return twin

    return {name: getattr(value, name) for name in names}, join


def _holds_tensors(value: Any) -> bool:
    """A plain object with tensors below its attributes, such as a batch of a data loader."""
    return _is_plain(value) and _reaches_tensor(value, budgets.DEEPEST_CONTAINER)


def _is_plain(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, (type, nn.Module)) and not callable(value)


def _reaches_tensor(value: Any, depth: int) -> bool:
    if isinstance(value, torch.Tensor) or depth == 0:
        return depth > 0
    if isinstance(value, (dict, collections.UserDict)):
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        parts = list(value)
    else:
        parts = list(vars(value).values()) if _is_plain(value) else []
    return any(_reaches_tensor(part, depth - 1) for part in parts)


_CONTAINERS: tuple[tuple[str, Callable[[Any], bool], Callable[[Any], tuple[dict[str, Any], Join]]], ...] = (
    ("cache", is_cache, _split_cache),
    ("dict", lambda v: isinstance(v, (dict, collections.UserDict)), _split_mapping),
    ("namedtuple", lambda v: isinstance(v, tuple) and hasattr(v, "_fields"), _split_named_tuple),
    ("list", lambda v: isinstance(v, list), _split_sequence),
    ("tuple", lambda v: isinstance(v, tuple) and not isinstance(v, torch.Size), _split_sequence),
    ("fields", lambda v: dataclasses.is_dataclass(v) and not isinstance(v, type), _split_dataclass),
    ("fields", _holds_tensors, split_object),
)
"""Kind, which values are of it, and how one is taken apart."""


def container_of(value: Any) -> Callable[[Any], tuple[dict[str, Any], Join]] | None:
    return next((split for _, fits, split in _CONTAINERS if fits(value)), None)


def parts_of(value: Any) -> tuple[str, dict[str, Any]] | None:
    """The kind of a container and its parts by the names that they have in leaves; None for what is no container."""
    return next(((kind, split(value)[0]) for kind, fits, split in _CONTAINERS if fits(value)), None)
