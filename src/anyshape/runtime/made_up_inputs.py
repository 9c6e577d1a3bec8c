"""Inputs for a file that nobody gave inputs for: of any size, with values that the file takes.

`make_inputs` is the one maker. Whoever calls it says how values are drawn: `Contents` for a static file, whose values
are found by running it; `Calls` for a file of any sizes, where another content is tried when one is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from typing import Any

import numpy as np

from anyshape.errors import DeclarationError
from anyshape.onnxfile.interface import Interface, Port
from anyshape.runtime.session import Array, Feeds, RuntimeFailureError, Session
from anyshape.sizes import budgets
from anyshape.sizes.notation import FUNCTIONS, Expression, parse_expression

_FLOATS = ("float16", "float32", "float64")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

Shapes = Mapping[str, tuple[int, ...]]
Draw = Callable[[np.random.Generator, str, np.dtype[Any], tuple[int, ...]], Any]
"""The values of an input, by its name, its type and its shape."""


def make_inputs(
    types: Iterable[tuple[str, np.dtype[Any]]], shapes: Shapes, chance: np.random.Generator, draw: Draw
) -> Feeds:
    """One array for each input, one after the other: what is drawn for one depends on those before."""
    drawn = ((name, dtype, draw(chance, name, dtype, shapes[name])) for name, dtype in types)
    return {name: np.asarray(values).astype(dtype, copy=False) for name, dtype, values in drawn}


def _drawn_floats(draw: Callable[..., Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """In the narrowest type that generators have and that holds the input's: of a long input, a wide copy is much."""
    return draw(shape, dtype=np.float64 if dtype.itemsize > 4 else np.float32)


def _types_of(ports: Iterable[Port]) -> list[tuple[str, np.dtype[Any]]]:
    return [(port.name, np.dtype(port.dtype)) for port in ports]


def is_mask(name: str, dtype: str) -> bool:
    return dtype == "bool" or "mask" in name.lower()


# ---- of a static file

_BELOW = (1000, 100, 30, 8)
"""Integers may be indices into a table of any length: the largest of these that runs is taken, else 0 and 1."""
_SHOWN = 0.8
"""The part of a mask that is 1."""
_MOST_NAN = 0.1


@dataclass(frozen=True)
class Contents:
    """Makes the inputs of a file."""

    ports: tuple[Port, ...]
    seed: int = 0
    below: Mapping[str, int] = field(default_factory=dict)
    """Integer inputs: all values lie below."""
    is_positive: bool = False
    """Whether floats lie between 0 and 1: some files take logarithms."""

    def make(self, shapes: Shapes, number: int) -> Feeds:
        """The inputs with these shapes; another number gives other values."""
        volume, most = sum(math.prod(shape) for shape in shapes.values()), budgets.MOST_ELEMENTS_MADE_UP
        if volume > most:
            raise DeclarationError(f"the inputs have {volume:,} elements, more than the {most:,} made up here")
        chance = np.random.default_rng((self.seed, number))
        return make_inputs(_types_of(self.ports), shapes, chance, self._draw)

    def _draw(self, chance: np.random.Generator, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        if is_mask(name, dtype.name):
            mask = chance.random(shape, dtype=np.float32) < _SHOWN
            if shape:
                mask[..., 0] = True  # a row that shows nothing has no mean
            return mask
        if dtype.kind == "f":
            return _drawn_floats(chance.random if self.is_positive else chance.standard_normal, dtype, shape)
        return chance.integers(0, self.below.get(name, 2), shape, dtype=dtype)


def own_shapes(ports: tuple[Port, ...]) -> dict[str, tuple[int, ...]]:
    return {port.name: tuple(axis for axis in port.axes or () if isinstance(axis, int)) for port in ports}


def find_contents(session: Session, ports: tuple[Port, ...], seed: int) -> Contents:
    """Values that the file takes; RuntimeFailureError where it takes none of those that are tried."""
    for port in ports:
        if port.dtype not in (*_FLOATS, *_INTEGERS, "bool"):
            raise DeclarationError(f"input `{port.name}` is {port.dtype}, so that no values can be made up for it")
    contents = Contents(ports, seed)
    # NaN on both sides agree, so a file that gives mostly NaN would pass whatever it does
    if not _are_numbers(session.run(contents.make(own_shapes(ports), 0))):
        contents = replace(contents, is_positive=True)
    for port in ports:
        if port.dtype in _INTEGERS and not is_mask(port.name, port.dtype):
            contents = _as_wide_as_possible(contents, port, session)
    return contents


def _are_numbers(outputs: list[Array]) -> bool:
    """Whether hardly any value is NaN: NaN hides what is wrong."""
    return all(float(np.isnan(one).mean()) < _MOST_NAN for one in outputs if one.dtype.kind == "f" and one.size)


def _as_wide_as_possible(contents: Contents, port: Port, session: Session) -> Contents:
    for below in _BELOW:
        if below > 127 and port.dtype in ("int8", "uint8"):
            continue
        feeds = contents.make(own_shapes(contents.ports), 0)
        # the largest value alone: drawn ones would miss it, and the first index out of range is what fails
        feeds[port.name] = np.full_like(feeds[port.name], below - 1)
        try:
            session.run(feeds)
        except RuntimeFailureError:
            continue
        return replace(contents, below={**contents.below, port.name: below})
    return contents


# ---- of a file with names on its axes

CONTENTS = 3
"""How many contents there are to try."""


@dataclass(frozen=True)
class Calls:
    """Makes the inputs of a file at any size."""

    axes: Mapping[str, tuple[Expression | int, ...]]
    interface: Interface
    seed: int

    @property
    def dims(self) -> tuple[str, ...]:
        entries = (axis for row in self.axes.values() for axis in row if isinstance(axis, Expression))
        return tuple(dict.fromkeys(name for entry in entries for name in entry.names))

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]] | None:
        """The shape of every input; None where an expression has no size."""
        try:
            found = {n: tuple(a if isinstance(a, int) else a.value(sizes) for a in row) for n, row in self.axes.items()}
        except ZeroDivisionError:
            return None
        return found if all(size >= 0 for shape in found.values() for size in shape) else None

    def make(self, shapes: Shapes, content: int) -> Feeds:
        def drawn(chance: np.random.Generator, _: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
            if dtype.kind == "f" and content < 2:
                return _drawn_floats((chance.standard_normal, chance.random)[content], dtype, shape)
            # 0 and 1 are valid as an index, a mask and a flag; all ones as a length, too
            is_one = dtype.kind == "f" or content == 1
            return np.full(shape, is_one, dtype) if content else chance.integers(0, 2, shape, dtype=dtype)

        return make_inputs(_types_of(self.interface.inputs), shapes, np.random.default_rng(self.seed), drawn)


def axes_by_input(ports: Sequence[Port]) -> dict[str, tuple[Expression | int, ...]]:
    """Every axis as a number or an expression; what is open, or labelled by no expression, gets a name of its own."""
    for port in ports:
        _refuse_what_cannot_be_made_up(port)
    labels = {(port.name, place): axis for port in ports for place, axis in enumerate(port.axes or ())}
    known = {axis: found for axis in labels.values() if isinstance(axis, str) and (found := _expression_or_none(axis))}
    taken = {name for expression in known.values() for name in expression.names}
    named: dict[object, Expression] = dict(known.items())
    for place, axis in labels.items():
        key = place if axis is None else axis
        if not isinstance(axis, int) and key not in named:
            name = _dim_name(axis or f"{place[0]}_dim{place[1]}")
            while name in taken:  # `a b` beside `a_b`
                name += "_"
            taken.add(name)
            named[key] = parse_expression(name)
    rows = {place: axis if isinstance(axis, int) else named[axis or place] for place, axis in labels.items()}
    return {port.name: tuple(rows[port.name, place] for place in range(len(port.axes or ()))) for port in ports}


def _expression_or_none(text: str) -> Expression | None:
    try:
        return parse_expression(text)
    except DeclarationError:
        return None  # a name such as `batch size`


def _refuse_what_cannot_be_made_up(port: Port) -> None:
    if port.axes is None:
        raise DeclarationError(f"input `{port.name}` declares no axes, so no call can be made up: give the model, too")
    if port.dtype not in (*_FLOATS, *_INTEGERS, "bool"):
        raise DeclarationError(f"input `{port.name}` is {port.dtype}, so no call can be made up: give the model, too")
    if negative := [axis for axis in port.axes if isinstance(axis, int) and axis < 0]:
        raise DeclarationError(f"input `{port.name}` declares the size {negative[0]}")


def _dim_name(text: str) -> str:
    """A dim's name from any text; a word of Python, or what expressions call, is none."""
    name = re.sub(r"\W", "_", text if text[:1].isalpha() or text[:1] == "_" else f"_{text}")
    return f"{name}_" if iskeyword(name) or name in FUNCTIONS else name
