"""A call as named leaves, and back: `batch.ids`, `states.0.1`, `past_key_values.0.key`.

Containers need no registration: what a container is stands in one table below. The adapter turns the user's target into
a module from flat tensors to flat tensors, which is all that an exporter needs to see.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError

Values = Mapping[str, Any]
_Rebuild = Callable[[Values], Any]
_Join = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Leaf:
    """One tensor or number of a call, with its dotted name."""

    name: str
    value: Any

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.value, torch.Tensor)


@dataclass(frozen=True)
class Signature:
    """The structure of one call: its leaves in the order in which the call was written, and the way back."""

    leaves: tuple[Leaf, ...]
    positional: tuple[_Rebuild, ...]
    keywords: Mapping[str, _Rebuild]

    @property
    def values(self) -> dict[str, Any]:
        return {leaf.name: leaf.value for leaf in self.leaves}

    def build(self, values: Values) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with these leaves; what is not named keeps the example's value."""
        merged = {**self.values, **values}
        return tuple(make(merged) for make in self.positional), {k: make(merged) for k, make in self.keywords.items()}


# ---- containers: how to take one apart, and how to put it together


def _is_cache(value: Any) -> bool:
    """A transformers cache: layers that hold keys and values as attributes, not as a dict's methods."""
    layers = getattr(value, "layers", None)
    return isinstance(layers, list) and all(
        hasattr(layer, "values") and not callable(getattr(layer, "keys", callable)) for layer in layers
    )


_COUNTED = "cumulative_length"
"""What a layer of fixed room has been filled with so far: a tensor, and an input like the room itself."""


def _split_cache(cache: Any) -> tuple[dict[str, Any], _Join]:
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


def _split_mapping(value: Any) -> tuple[dict[str, Any], _Join]:
    keys = {str(key): key for key in value}
    if len(keys) != len(value):
        raise DeclarationError(f"the keys {list(value)} of a dict are the same as text: rename one")

    def join(new: dict[str, Any]) -> Any:
        twin = copy.copy(value)
        for name, key in keys.items():
            twin[key] = new[name]
        return twin

    return {name: value[key] for name, key in keys.items()}, join


def _split_named_tuple(value: Any) -> tuple[dict[str, Any], _Join]:
    return dict(zip(value._fields, value, strict=True)), lambda new: type(value)._make(new.values())


def _split_sequence(value: Any) -> tuple[dict[str, Any], _Join]:
    return {str(i): part for i, part in enumerate(value)}, lambda new: type(value)(new.values())


def _split_dataclass(value: Any) -> tuple[dict[str, Any], _Join]:
    return _split_attributes(value, [field.name for field in dataclasses.fields(value)])


def _split_object(value: Any) -> tuple[dict[str, Any], _Join]:
    return _split_attributes(value, list(vars(value)))


def _split_attributes(value: Any, names: list[str]) -> tuple[dict[str, Any], _Join]:
    def join(new: dict[str, Any]) -> Any:
        twin = copy.copy(value)
        for name, part in new.items():
            object.__setattr__(twin, name, part)  # a frozen dataclass, too
        return twin

    return {name: getattr(value, name) for name in names}, join


def _holds_tensors(value: Any) -> bool:
    """A plain object with tensors below its attributes, such as a batch of a data loader."""
    return _is_plain(value) and _reaches_tensor(value, _DEEPEST)


def _is_plain(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, (type, nn.Module)) and not callable(value)


_DEEPEST = 6
"""Objects may refer to each other in circles."""


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


_CONTAINERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], tuple[dict[str, Any], _Join]]], ...] = (
    (_is_cache, _split_cache),
    (lambda v: isinstance(v, (dict, collections.UserDict)), _split_mapping),
    (lambda v: isinstance(v, tuple) and hasattr(v, "_fields"), _split_named_tuple),
    (lambda v: isinstance(v, (list, tuple)) and not isinstance(v, torch.Size), _split_sequence),
    (lambda v: dataclasses.is_dataclass(v) and not isinstance(v, type), _split_dataclass),
    (_holds_tensors, _split_object),
)


def _container_of(value: Any) -> Callable[[Any], tuple[dict[str, Any], _Join]] | None:
    return next((split for fits, split in _CONTAINERS if fits(value)), None)


_KINDS = {
    _split_cache: "cache",
    _split_mapping: "dict",
    _split_named_tuple: "namedtuple",
    _split_dataclass: "fields",
    _split_object: "fields",
}


def parts_of(value: Any) -> tuple[str, dict[str, Any]] | None:
    """The kind of a container and its parts by the names that they have in leaves; None for what is no container."""
    split = _container_of(value)
    if split is None:
        return None
    kind = _KINDS.get(split) or ("list" if isinstance(value, list) else "tuple")
    return kind, split(value)[0]


# ---- a call


def bind_call(target: Target, args: Any, kwargs: Mapping[str, Any] | None = None) -> Signature:
    """The call as the target's signature sees it; a trailing dict of unbound parameters is keywords."""
    positional, keywords = _arguments(target.signature, args, kwargs)
    try:
        bound = target.signature.bind(*positional, **keywords)
    except TypeError as error:
        names = ", ".join(target.signature.parameters)
        raise DeclarationError(f"the example does not fit `{target.name}({names})`: {error}") from None
    leaves: list[Leaf] = []
    try:
        ordered = [(n, _walk(n, v, leaves)) for n, v in _in_order_of_the_call(target.signature, bound, keywords)]
    except RecursionError:
        raise DeclarationError("the example holds an object that contains itself: pass its tensors instead") from None
    _refuse_one_name_twice([leaf.name for leaf in leaves])
    count = len(positional)
    return Signature(tuple(leaves), tuple(r for _, r in ordered[:count]), dict(ordered[count:]))


def _refuse_one_name_twice(names: list[str]) -> None:
    twice = [name for name, count in collections.Counter(names).items() if count > 1]
    if twice:
        raise DeclarationError(f"two inputs are called `{twice[0]}`: rename a key of the example")


def _arguments(
    signature: inspect.Signature, args: Any, kwargs: Mapping[str, Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    positional = args if isinstance(args, tuple) else (args,)
    if kwargs or not positional or not isinstance(positional[-1], (dict, collections.UserDict)):
        return positional, dict(kwargs or {})
    *rest, last = positional
    return (tuple(rest), dict(last)) if _are_keywords(signature, len(rest), last) else (positional, {})


def _are_keywords(signature: inspect.Signature, bound: int, last: Mapping[Any, Any]) -> bool:
    """Whether the keys of a trailing dict are unbound parameters, or the dict can be nothing else than keywords."""
    kinds = inspect.Parameter
    parameters = list(signature.parameters.values())
    unbound = [p for p in parameters[bound:] if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    if not last:
        return all(p.default is not p.empty for p in unbound)
    names = {p.name for p in parameters if p.kind is kinds.KEYWORD_ONLY or p in unbound}
    if names >= last.keys():
        return True
    takes_any = any(p.kind is kinds.VAR_KEYWORD for p in parameters) and all(isinstance(key, str) for key in last)
    return takes_any and (not unbound or not names.isdisjoint(last))


def _in_order_of_the_call(
    signature: inspect.Signature, bound: inspect.BoundArguments, keywords: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Positional arguments by parameter name, then keywords as they were written."""
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from ((f"{name}.{i}", part) for i, part in enumerate(value))
        elif parameter.kind is not parameter.VAR_KEYWORD and name not in keywords:
            yield name, value
    yield from keywords.items()


def _walk(name: str, value: Any, leaves: list[Leaf]) -> _Rebuild:
    """Append the leaves below `value`; return what rebuilds it from leaves."""
    if isinstance(value, torch.Tensor):
        _refuse_unusual(name, value)
    if isinstance(value, np.ndarray):
        raise DeclarationError(f"`{name}` is a numpy array: pass torch.from_numpy({name})")
    if isinstance(value, (torch.Tensor, int, float)):
        leaves.append(Leaf(name, value.detach() if isinstance(value, torch.Tensor) else value))
        return lambda values: values[name]
    split = _container_of(value)
    if split is None:
        return lambda _: value
    parts, join = split(value)
    rebuilds = {key: _walk(f"{name}.{key}", part, leaves) for key, part in parts.items()}
    return lambda values: join({key: rebuild(values) for key, rebuild in rebuilds.items()})


def _refuse_unusual(name: str, value: torch.Tensor) -> None:
    if value.layout is not torch.strided:
        kind = str(value.layout).removeprefix("torch.")
        raise DeclarationError(
            f"`{name}` is a {kind} tensor, ONNX inputs are dense: pass indices and values as inputs instead"
        )
    if value.is_complex():
        raise DeclarationError(f"`{name}` is complex, ONNX inputs are real: pass torch.view_as_real({name}) instead")
    if value.is_quantized:
        raise DeclarationError(f"`{name}` is a quantised tensor: pass it dequantised")


# ---- outputs


_NUMBERS = (torch.Tensor, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


def flatten_outputs(result: Any) -> list[tuple[str, Any]]:
    """The tensors and numbers of a result, with the names that they get in the file."""
    if hasattr(result, "_fields") or not isinstance(result, (list, tuple)):
        return list(_output_leaves("present" if _is_cache(result) else "", result))
    named = (("present" if _is_cache(part) else f"output.{index}", part) for index, part in enumerate(result))
    return [leaf for name, part in named for leaf in _output_leaves(name, part)]


def _output_leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, _NUMBERS):
        yield name or "output", value
        return
    split = _container_of(value)
    if split is None:
        return
    for key, part in split(value)[0].items():
        leaves = _output_leaves(f"{name}.{key}" if name else _output_key(key), part)
        # a plain object's flags and counters are its own, such as a cache's `is_updated`; its tensors are results
        yield from (leaf for leaf in leaves if split is not _split_object or isinstance(leaf[1], torch.Tensor))


def _output_key(key: str) -> str:
    """What comes back of `past_key_values` is `present`, as everywhere in the field."""
    return "present" if key == "past_key_values" else key


class Adapter(nn.Module):
    """The target as a module from flat inputs to flat tensors, in the order of `inputs`."""

    def __init__(self, target: Target, signature: Signature, inputs: tuple[str, ...]) -> None:
        super().__init__()
        self.model = target.module
        self._target = target
        self._signature = signature
        self._inputs = inputs
        self.training = target.module.training  # an exported program refuses `train()`

    def forward(self, *values: Any) -> tuple[torch.Tensor, ...]:
        args, kwargs = self._signature.build(dict(zip(self._inputs, values, strict=True)))
        return tuple(as_tensor(value) for _, value in flatten_outputs(self._target.call(*args, **kwargs)))


def as_tensor(value: Any) -> torch.Tensor:
    """A number among the outputs becomes a tensor without axes."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, (bool, torch.SymBool)):
        return torch.scalar_tensor(value, dtype=torch.bool)  # type: ignore[arg-type]
    if isinstance(value, (int, torch.SymInt)):
        return torch.scalar_tensor(value, dtype=torch.int64)  # type: ignore[arg-type]
    return torch.scalar_tensor(value, dtype=torch.float32)
