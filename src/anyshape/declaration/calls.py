"""A call as named leaves, and back: `batch.ids`, `states.0.1`, `past_key_values.0.key`; its outputs, too.

With both, the target is a module from flat tensors to flat tensors, which is all that an exporter needs to see.
"""

from __future__ import annotations

import collections
import functools
import inspect
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from anyshape.declaration.containers import container_of, is_cache, split_object
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError

LeafValues = Mapping[str, Any]
_Rebuild = Callable[[LeafValues], Any]


@dataclass(frozen=True)
class Leaf:
    """One tensor or number of a call, with its dotted name."""

    name: str
    value: Any
    is_complex: bool = False
    """Whether the call has complex numbers there; the value, and the file, have pairs of real and imaginary parts."""

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.value, torch.Tensor)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor in the call."""
        return tuple(self.value.shape[:-1] if self.is_complex else self.value.shape)


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
    if isinstance(value, torch.Tensor) and value.is_complex():
        leaves.append(Leaf(name, as_tensor(value.detach()), is_complex=True))
        return lambda values: torch.view_as_complex(values[name].contiguous())
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
    if is_float8(value.dtype):
        kind = str(value.dtype).removeprefix("torch.")
        raise DeclarationError(f"`{name}` is {kind}, which numpy lacks: pass float16, and cast it in the model")
    if value.is_quantized:
        raise DeclarationError(f"`{name}` is a quantised tensor: pass it dequantised")


def is_float8(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point and dtype.itemsize == 1


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


# ---- the outputs of a call, and the target as an exporter sees it

_NUMBERS = (torch.Tensor, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


def flatten_outputs(result: Any) -> list[tuple[str, Any]]:
    """The tensors and numbers of a result, with the names that they get in the file."""
    if hasattr(result, "_fields") or not isinstance(result, (list, tuple)):
        return list(_output_leaves("present" if is_cache(result) else "", result))
    named = (("present" if is_cache(part) else f"output.{index}", part) for index, part in enumerate(result))
    return [leaf for name, part in named for leaf in _output_leaves(name, part)]


def _output_leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, _NUMBERS):
        yield name or "output", value
        return
    split = container_of(value)
    if split is None:
        return
    for key, part in split(value)[0].items():
        # what comes back of `past_key_values` is `present`, as everywhere in the field
        own = f"{name}.{key}" if name else "present" if key == "past_key_values" else key
        leaves = _output_leaves(own, part)
        # a plain object's flags and counters are its own, such as a cache's `is_updated`; its tensors are results
        yield from (leaf for leaf in leaves if split is not split_object or isinstance(leaf[1], torch.Tensor))


def as_tensor(value: Any) -> torch.Tensor:
    """A number among the outputs becomes a tensor without axes; complex numbers become pairs, since ONNX has none."""
    if isinstance(value, torch.Tensor):
        return torch.view_as_real(value.resolve_conj() if value.is_conj() else value) if value.is_complex() else value
    if isinstance(value, (bool, torch.SymBool)):
        return torch.scalar_tensor(value, dtype=torch.bool)  # type: ignore[arg-type]
    if isinstance(value, (int, torch.SymInt)):
        return torch.scalar_tensor(value, dtype=torch.int64)  # type: ignore[arg-type]
    return torch.scalar_tensor(value, dtype=torch.float32)


class Adapter(nn.Module):
    """The target as a module from flat inputs to flat tensors, in the order of `inputs`."""

    def __init__(
        self, target: Target, signature: Signature, inputs: tuple[str, ...], reshaped: Container[str] = ()
    ) -> None:
        """`reshaped` inputs are given as copies: the target gives them another shape in place, as `x.t_()` does."""
        super().__init__()
        self.model = target.module
        self._target = target
        self._signature = signature
        self._inputs = inputs
        self._reshaped = reshaped
        self.training = target.module.training  # an exported program refuses `train()`

    def forward(self, *values: Any) -> tuple[torch.Tensor, ...]:
        given = dict(zip(self._inputs, values, strict=True))
        given = {name: value.clone() if name in self._reshaped else value for name, value in given.items()}
        args, kwargs = self._signature.build(given)
        return tuple(as_tensor(value) for _, value in flatten_outputs(self._target.call(*args, **kwargs)))


# ---- `dtype=`: calls in another type


def casting(make_inputs: Callable[..., Any], target: Target, dtype: torch.dtype) -> Callable[..., Any]:
    @functools.wraps(make_inputs)
    def cast_inputs(*args: Any, **kwargs: Any) -> dict[str, Any]:
        made, keywords = cast(bind_call(target, *read_call(make_inputs(*args, **kwargs))), dtype).build({})
        return {"args": made, "kwargs": keywords}

    return cast_inputs


def cast(signature: Signature, dtype: torch.dtype) -> Signature:
    leaves = tuple(
        replace(leaf, value=leaf.value.to(dtype)) if leaf.is_tensor and leaf.value.is_floating_point() else leaf
        for leaf in signature.leaves
    )
    return Signature(leaves, signature.positional, signature.keywords)
