"""A call as named leaves, and back: `batch.ids`, `states.0.1`, `past_key_values.0.key`."""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from anyshape.declaration.containers import container_of
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError

LeafValues = Mapping[str, Any]
_Rebuild = Callable[[LeafValues], Any]


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

    def build(self, values: LeafValues) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with these leaves; what is not named keeps the example's value."""
        merged = {**self.values, **values}
        return tuple(make(merged) for make in self.positional), {k: make(merged) for k, make in self.keywords.items()}


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
        ordered = [(n, _add_leaves(n, v, leaves)) for n, v in _in_order_of_the_call(target.signature, bound, keywords)]
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


def _add_leaves(name: str, value: Any, leaves: list[Leaf]) -> _Rebuild:
    """Append the leaves below `value`; return what rebuilds it from leaves."""
    if isinstance(value, torch.Tensor):
        _refuse_unusual(name, value)
    if isinstance(value, np.ndarray):
        raise DeclarationError(f"`{name}` is a numpy array: pass torch.from_numpy({name})")
    if isinstance(value, (torch.Tensor, int, float)):
        leaves.append(Leaf(name, value.detach() if isinstance(value, torch.Tensor) else value))
        return lambda values: values[name]
    split = container_of(value)
    if split is None:
        return lambda _: value
    parts, join = split(value)
    rebuilds = {key: _add_leaves(f"{name}.{key}", part, leaves) for key, part in parts.items()}
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


# ---- a call as users write it in one value


def read_call(given: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """Arguments and keywords; all but `{"args": ..., "kwargs": ...}` is taken as arguments."""
    if not isinstance(given, dict) or not given or not set(given) <= {"args", "kwargs"}:
        return given, None
    args = given.get("args", ())
    return tuple(args) if isinstance(args, list) else args, given.get("kwargs")


def example_of(module: nn.Module) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments and keywords that a module carries as its example; None where it has none.

    A tuple or a list holds arguments, a dict holds keywords, anything else is the one argument: as Lightning calls it.
    """
    example = getattr(module, "example_input_array", None)
    if example is None:
        return None
    if isinstance(example, (tuple, list)):
        return tuple(example), {}
    return ((), dict(example)) if isinstance(example, dict) else ((example,), {})
