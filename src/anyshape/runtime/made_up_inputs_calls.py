"""Made-up calls of a file that nobody gave inputs for: every axis a number or an expression, at any sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anyshape.errors import DeclarationError
from anyshape.onnxfile.interface import Interface, Port
from anyshape.sizes.notation import Expression, parse_expression


def _floats(generator: np.random.Generator, shape: tuple[int, ...], content: int) -> np.ndarray[Any, Any]:
    return (generator.standard_normal(shape), generator.random(shape), np.ones(shape))[content]


def _integers(generator: np.random.Generator, shape: tuple[int, ...], content: int) -> np.ndarray[Any, Any]:
    """0 and 1 are valid as an index, a mask and a flag; all ones as a length, too."""
    return (generator.integers(0, 2, shape), np.ones(shape), np.zeros(shape))[content]


_FLOATS = ("float16", "float32", "float64")
_INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_MAKERS = dict.fromkeys(_FLOATS, _floats) | dict.fromkeys(_INTEGERS, _integers)


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

    def make(self, shapes: Mapping[str, tuple[int, ...]], content: int) -> dict[str, np.ndarray[Any, Any]]:
        generator = np.random.default_rng(self.seed)
        return {
            port.name: _MAKERS[port.dtype](generator, shapes[port.name], content).astype(port.dtype)
            for port in self.interface.inputs
        }


def axes_of(port: Port) -> tuple[Expression | int, ...]:
    """Every axis as a number or an expression; one that is open and unnamed gets a name."""
    if port.axes is None:
        raise DeclarationError(f"input `{port.name}` declares no axes, so no call can be made up: give the model, too")
    if port.dtype not in _MAKERS:
        raise DeclarationError(f"input `{port.name}` is {port.dtype}, so no call can be made up: give the model, too")
    if negative := [axis for axis in port.axes if isinstance(axis, int) and axis < 0]:
        raise DeclarationError(f"input `{port.name}` declares the size {negative[0]}")
    return tuple(_axis(port.name, index, axis) for index, axis in enumerate(port.axes))


def _axis(name: str, index: int, axis: int | str | None) -> Expression | int:
    if isinstance(axis, int):
        return axis
    try:
        return parse_expression(axis if axis is not None else _plain(f"{name}_dim{index}"))
    except DeclarationError:
        return parse_expression(_plain(axis or ""))  # a name such as `batch size`


def _plain(name: str) -> str:
    """A dim's name from any text."""
    return re.sub(r"\W", "_", name if name[:1].isalpha() or name[:1] == "_" else f"_{name}")
