"""What a file takes, asked of every call: dtypes, axes, one size for one dim, the declared sizes, limits.

All of it is made ready when the file is loaded: a call that fits costs a few comparisons for each input. A call that
does not is told by one sentence that names both sides.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anyshape.errors import DeclarationError
from anyshape.onnxfile.contract import Contract
from anyshape.onnxfile.interface import Port
from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, Evaluate, Expression, SizeRange, evaluator, parse_expression, solve_for

_NUMPY = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
})  # fmt: skip
"""Elsewhere (bfloat16, texts, sequences) the runtime judges."""


@dataclass(frozen=True, slots=True)
class AcceptedInput:
    """What one input must be; no dtype or no rank is asked for where there is none."""

    name: str
    dtype: np.dtype[Any] | None
    rank: int | None
    fixed: tuple[tuple[int, int], ...]
    """Axis, size."""
    named: tuple[tuple[int, str], ...]
    """Axis, dim."""
    number: str | None = None
    """The dim that is this input's value."""

    def check(self, array: Any) -> tuple[int, ...]:
        """The shape, if dtype, number of axes and those of one size are right."""
        if self.dtype is not None and array.dtype != self.dtype:
            raise DeclarationError(f"`{self.name}` is {array.dtype}, but takes {self.dtype}")
        if self.rank is None:
            return ()
        shape: tuple[int, ...] = array.shape  # made anew each time that it is asked for
        if len(shape) != self.rank:
            raise DeclarationError(f"`{self.name}` has the shape {list(shape)}, but takes [{self._axes}]")
        for axis, size in self.fixed:
            if shape[axis] != size:
                raise DeclarationError(f"axis {axis} of `{self.name}` is {shape[axis]}, but takes {size}")
        return shape

    @property
    def _axes(self) -> str:
        by_axis: dict[int, object] = {**dict(self.fixed), **dict(self.named)}
        return ", ".join(str(by_axis.get(axis, "?")) for axis in range(self.rank or 0))


@dataclass(frozen=True, slots=True)
class ComputedSize:
    """An axis whose size is an expression, or an input whose value is one."""

    name: str
    axis: int | None
    expression: Expression
    value: Evaluate

    def value_at(self, sizes: Mapping[str, int]) -> int | None:
        try:
            return self.value(sizes)
        except ZeroDivisionError:
            return None

    def size(self, feeds: Mapping[str, Any]) -> int:
        return int(feeds[self.name]) if self.axis is None else int(feeds[self.name].shape[self.axis])

    @property
    def where(self) -> str:
        return f"`{self.name}`" if self.axis is None else f"axis {self.axis} of `{self.name}`"


Likeness = tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]
"""Name, dtype and shape of every input."""


@dataclass(frozen=True)
class Acceptance:
    """All that a file asks of its inputs."""

    inputs: tuple[AcceptedInput, ...]
    computed: tuple[ComputedSize, ...]
    ranges: tuple[tuple[str, Container[int], SizeRange], ...]
    """Each dim with its sizes twice: as Python finds a member soonest, and as it was declared."""
    conditions: tuple[tuple[Condition, frozenset[str]], ...]
    """With the dims in each: one that only an expression holds may stay unknown."""

    @property
    def asks_for_shapes_alone(self) -> bool:
        """Whether two calls of the same dtypes and shapes are both taken, or neither."""
        of_values = any(one.axis is None for one in self.computed)
        return not of_values and all(
            one.dtype is not None and one.rank is not None and one.number is None for one in self.inputs
        )

    def check(self, feeds: Mapping[str, Any]) -> dict[str, int]:
        """The size of every dim in these arrays; a sentence where they are not what the file takes."""
        sizes: dict[str, int] = {}
        for one in self.inputs:
            array = feeds[one.name]
            shape = one.check(array)
            for axis, dim in one.named:
                if sizes.setdefault(dim, shape[axis]) != shape[axis]:
                    raise DeclarationError(self._two_sizes(dim, feeds))
            if one.number is not None and sizes.setdefault(one.number, int(array)) != array:
                raise DeclarationError(self._two_sizes(one.number, feeds))
        if self.computed:
            self._check_computed(feeds, sizes)
        self._check_sizes(sizes)
        return sizes

    def _check_sizes(self, sizes: Mapping[str, int]) -> None:
        for dim, allowed, declared in self.ranges:
            if dim in sizes and sizes[dim] not in allowed:
                raise DeclarationError(_outside_range(dim, sizes[dim], declared))
        for condition, dims in self.conditions:
            if sizes.keys() >= dims and not condition.holds(sizes):
                raise DeclarationError(_broken_condition(condition, sizes))

    def _check_computed(self, feeds: Mapping[str, Any], sizes: dict[str, int]) -> None:
        """Dims that stand only in expressions are solved for where the others leave one answer."""
        for one in self.computed:
            unknown = [dim for dim in one.expression.names if dim not in sizes]
            if len(unknown) == 1 and (found := solve_for(unknown[0], one.value, one.size(feeds), sizes)) is not None:
                sizes[unknown[0]] = found
        for one in self.computed:
            if sizes.keys() >= set(one.expression.names) and one.value_at(sizes) != one.size(feeds):
                used = ", ".join(f"{dim} = {sizes[dim]}" for dim in one.expression.names)
                wanted = f"`{one.expression}` = {one.value_at(sizes)} with {used}"
                raise DeclarationError(f"{one.where} is {one.size(feeds)}, but takes {wanted}")

    def _two_sizes(self, dim: str, feeds: Mapping[str, Any]) -> str:
        places: list[tuple[str, int | None, int]] = [
            (g.name, axis, feeds[g.name].shape[axis]) for g in self.inputs for axis, named in g.named if named == dim
        ]
        places += [(g.name, None, int(feeds[g.name])) for g in self.inputs if g.number == dim]
        name, axis, size = places[0]
        other, other_axis, other_size = next(place for place in places if place[2] != size)
        if name == other:
            return f"`{dim}` is {size} on axis {axis} of `{name}` but {other_size} on axis {other_axis}"
        return f"`{dim}` is {size} in `{name}` but {other_size} in `{other}`"


def _outside_range(dim: str, size: int, allowed: SizeRange) -> str:
    if allowed.values is not None:
        return f"`{dim}` = {size} is none of {', '.join(map(str, allowed.values))}"
    if size < allowed.lo:
        return f"`{dim}` = {size} is below {allowed.lo}"
    if allowed.hi is not None and size > allowed.hi:
        return f"`{dim}` = {size} is above {allowed.hi}"
    return f"`{dim}` = {size} is not in {allowed}"


def _broken_condition(condition: Condition, sizes: Mapping[str, int]) -> str:
    given = " and ".join(f"`{dim}` = {sizes[dim]}" for dim in condition.names)
    return f"the file takes `{condition}`, but {given}"


# ---- from what a file declares


def acceptance_of(ports: Sequence[Port], contract: Contract | None) -> Acceptance:
    """Expressions count where a contract vouches for them; elsewhere a label is a name, however it is written."""
    numbers = contract.numbers if contract is not None else {}
    return Acceptance(
        tuple(_accepted_input(port, numbers.get(port.name), has_contract=contract is not None) for port in ports),
        tuple(_computed_sizes(ports, numbers)) if contract is not None else (),
        tuple((dim, _members(sizes), sizes) for dim, sizes in contract.dims.items()) if contract is not None else (),
        tuple((one, frozenset(one.names)) for one in contract.relations) if contract is not None else (),
    )


def _members(sizes: SizeRange) -> Container[int]:
    if sizes.values is not None:
        return frozenset(sizes.values)
    return range(sizes.lo, (budgets.LARGEST_ACCEPTED_SIZE if sizes.hi is None else sizes.hi) + 1, sizes.step)


def _accepted_input(port: Port, number: Expression | None, *, has_contract: bool) -> AcceptedInput:
    dtype = np.dtype(port.dtype) if port.dtype in _NUMPY else None
    if port.axes is None:
        return AcceptedInput(port.name, dtype, None, (), ())
    labels = [(axis, label) for axis, label in enumerate(port.axes) if isinstance(label, str)]
    named = tuple((axis, label) for axis, label in labels if not (has_contract and _is_computed(label)))
    fixed = tuple((axis, size) for axis, size in enumerate(port.axes) if isinstance(size, int))
    bare = number.text if number is not None and number.is_name and not port.axes else None
    return AcceptedInput(port.name, dtype, len(port.axes), fixed, named, bare)


def _is_computed(label: str) -> bool:
    try:
        return not parse_expression(label).is_name
    except DeclarationError:
        return False


def _computed_sizes(ports: Iterable[Port], numbers: Mapping[str, Expression]) -> Iterable[ComputedSize]:
    for port in ports:
        for axis, label in enumerate(port.axes or ()):
            if isinstance(label, str) and _is_computed(label):
                expression = parse_expression(label)
                yield ComputedSize(port.name, axis, expression, evaluator(expression.text))
        number = numbers.get(port.name)
        if number is not None and not number.is_name and port.axes == ():
            yield ComputedSize(port.name, None, number, evaluator(number.text))


# ---- inputs that hold what the module draws


class NoiseInputs:
    """Inputs of noise, which may be left to be drawn: their shapes follow from the others."""

    def __init__(self, ports: Sequence[Port], contract: Contract | None, seed: int | None = None) -> None:
        noises = contract.draws if contract is not None else {}
        given = {dim for port in ports if port.name not in noises for dim in _dims_of(port) or ()}
        drawn = [port for port in ports if port.name in noises and port.dtype in _NUMPY]
        drawn = [port for port in drawn if (dims := _dims_of(port)) is not None and dims <= given]
        self.names = tuple(port.name for port in drawn)
        self.others = acceptance_of([port for port in ports if port not in drawn], contract)
        self._rows = [
            (port.name, noises[port.name], np.dtype(port.dtype), [_size_at(axis) for axis in port.axes or ()])
            for port in drawn
        ]
        self._chance = np.random.default_rng(seed)  # which threads may share

    def drawn(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Noise for a call with these other inputs."""
        sizes = self.others.check(arrays)
        return {name: self._noise(noise, dtype, [at(sizes) for at in row]) for name, noise, dtype, row in self._rows}

    def _noise(self, noise: str, dtype: np.dtype[Any], shape: Sequence[int]) -> Any:
        if noise == "normal":
            return self._chance.standard_normal(shape).astype(dtype)
        below_one = np.nextafter(dtype.type(1), dtype.type(0))  # to which a narrower type may round
        return np.minimum(self._chance.random(shape).astype(dtype), below_one)


def _dims_of(port: Port) -> set[str] | None:
    """The dims in its axes; None where one of these has no size that could be computed."""
    if port.axes is None or None in port.axes:
        return None
    try:
        return {dim for axis in port.axes if isinstance(axis, str) for dim in parse_expression(axis).names}
    except DeclarationError:
        return None


def _size_at(axis: int | str | None) -> Evaluate:
    return evaluator(str(axis)) if isinstance(axis, str) else lambda _: axis  # type: ignore[return-value]
