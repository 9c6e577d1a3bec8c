"""`--input 'tokens: int64[batch, seq] < 1000'`: a declaration and a seeded random example in one.

Integers are drawn below the number after `<`, or from 0 and 1 where there is none; floats are normal, or uniform
below the number; every row of flags (bool, or integers from 0 and 1) has one that is set.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import torch

from anyshape.bench.plan import trace_sizes
from anyshape.declaration.spec import unnamed
from anyshape.declaration.targets import resolve_target
from anyshape.errors import DeclarationError
from anyshape.sizes.notation import (
    STATIC,
    Axis,
    Expression,
    InputText,
    SizeRange,
    Sizes,
    did_you_mean,
    parse_axes,
    parse_expression,
)
from anyshape.torchkit import capture
from anyshape.torchkit.state import untouched

_START_SIZES = (3, 16, 64, 224)
"""Small first; a model with strides may need more."""
_DTYPES = (
    "float16", "bfloat16", "float32", "float64", "half", "float", "double", "bool", "uint8", "int8", "int16", "int32",
    "int64", "short", "int", "long",
)  # fmt: skip


@dataclass(frozen=True)
class RandomInput:
    """One input: how to draw it at any size."""

    name: str
    dtype: torch.dtype
    axes: tuple[Expression | int, ...]
    below: int | None

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(name for axis in self.axes if isinstance(axis, Expression) for name in axis.names)

    def draw(self, sizes: Mapping[str, int], generator: torch.Generator) -> torch.Tensor:
        shape = tuple(axis if isinstance(axis, int) else axis.value(sizes) for axis in self.axes)
        if self.dtype.is_floating_point:
            if self.below is None:
                return torch.randn(shape, generator=generator).to(self.dtype)
            return (torch.rand(shape, generator=generator) * self.below).to(self.dtype)
        highest = 2 if self.below is None or self.dtype == torch.bool else self.below
        values = torch.randint(0, highest, shape, generator=generator)
        if highest == 2 and values.dim() and values.numel():
            values[..., 0] |= (values == 0).all(-1).long()  # a row without a flag is nothing: its mean is not a number
        return values.to(self.dtype)


def understand_inputs(texts: Sequence[InputText]) -> list[RandomInput]:
    """The inputs that were declared, checked."""
    names = [text.name for text in texts]
    for name in names:
        if names.count(name) > 1:
            raise DeclarationError(f"the input `{name}` is given twice")
        if "*" in name:
            raise DeclarationError(
                f"`{name}` is a wildcard, but every input needs values of its own: wildcards belong to --dim"
            )
    return [RandomInput(t.name, _dtype(t), _axes(t), _below(t)) for t in texts]


def _dtype(text: InputText) -> torch.dtype:
    found = getattr(torch, text.dtype) if text.dtype in _DTYPES else None
    if not isinstance(found, torch.dtype):
        raise DeclarationError(
            f"`{text.name}` is declared {text.dtype}, which is no element type{did_you_mean(text.dtype, _DTYPES)}"
        )
    return found


def _below(text: InputText) -> int | None:
    if text.below == 0:
        raise DeclarationError(f"`{text.name}` is declared < 0: no value is left")
    return text.below


def _axes(text: InputText) -> tuple[Expression | int, ...]:
    entries = parse_axes(text.axes, where=text.name)
    assert isinstance(entries, tuple)
    return tuple(_axis(text, index, entry) for index, entry in enumerate(entries))


def _axis(text: InputText, index: int, entry: Axis | EllipsisType) -> Expression | int:
    if entry is None:
        return parse_expression(unnamed(text.name, index))
    if isinstance(entry, int | Expression):
        return entry
    written = STATIC if entry == STATIC else "..."
    raise DeclarationError(
        f"`{text.name}` has `{written}` on axis {index}, which tells no size: write a name or a number"
    )


# ---- an example


def example_call(
    model: Any, inputs: Sequence[RandomInput], ranges: Mapping[str, SizeRange], seed: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A random call: its sizes are small, pairwise different, and the first of a few at which the model runs."""
    calls = [_call_at(model, inputs, sizes, seed) for sizes in _start_sizes(inputs, ranges)]
    return calls[0] if len(calls) == 1 else next((call for call in calls if _model_runs(model, *call)), calls[0])


def _start_sizes(inputs: Sequence[RandomInput], ranges: Mapping[str, SizeRange]) -> list[Sizes]:
    dims = list(dict.fromkeys(dim for one in inputs for dim in one.dims))
    known = {dim: ranges.get(dim, SizeRange()) for dim in dims}
    rows = (trace_sizes(dict.fromkeys(dims, start), known, (), lambda _: True) for start in _START_SIZES)
    return list({tuple(row.items()): row for row in rows}.values())


def _call_at(
    model: Any, inputs: Sequence[RandomInput], sizes: Sizes, seed: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    generator = torch.Generator().manual_seed(seed)
    nested = _nested_values({one.name: _values_at(one, sizes, generator) for one in inputs})
    return _positional_first(model, nested)


def _values_at(one: RandomInput, sizes: Sizes, generator: torch.Generator) -> torch.Tensor:
    try:
        return one.draw(sizes, generator)
    except (ZeroDivisionError, RuntimeError):  # a negative size, or one that divides by zero
        used = ", ".join(f"{dim} = {sizes[dim]}" for dim in dict.fromkeys(one.dims))
        raise DeclarationError(f"`{one.name}` has no shape at {used}: give --size for its dims") from None


def _nested_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """`batch.ids` becomes a dict, `states.0` and `states.1` a tuple."""
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *folders, last = name.split(".")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
            if not isinstance(place, dict):
                raise DeclarationError(f"`{folder}` of the input `{name}` is itself an input")
        if last in place:
            raise DeclarationError(f"the input `{name}` is also a container of others")
        place[last] = value
    return {name: _container(value) for name, value in tree.items()}


def _container(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    parts = {key: _container(part) for key, part in value.items()}
    if sorted(parts) == sorted(map(str, range(len(parts)))):
        return tuple(parts[str(index)] for index in range(len(parts)))
    return parts


def _positional_first(model: Any, named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Keywords in the order written; only a function that takes `*args` needs what stands before them by position."""
    parameters = list(resolve_target(model).signature.parameters.values())
    variadic = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    if variadic is None or variadic not in named:
        return (), named
    before = list(_names_before(parameters, variadic))
    missing = [name for name in before if name not in named]
    if missing:
        raise DeclarationError(f"the input `{missing[0]}` stands before `*{variadic}` and is missing")
    rest = {name: value for name, value in named.items() if name not in (*before, variadic)}
    return (*(named[name] for name in before), *named[variadic]), rest


def _names_before(parameters: Sequence[inspect.Parameter], variadic: str) -> Iterator[str]:
    for parameter in parameters:
        if parameter.name == variadic:
            return
        yield parameter.name


def _model_runs(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    target = resolve_target(model)
    try:
        with untouched(target.module), capture.quiet(), torch.no_grad():
            target.call(*args, **kwargs)
    except Exception:  # noqa: BLE001  the user's own model: other sizes may suit it
        return False
    return True
