"""An entry: a model, its inputs at any size, and the sizes at which every file is judged."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

Sizes = Mapping[str, int]
Maker = Callable[..., Any]

COLUMNS: dict[str, tuple[int, ...]] = {
    "batch": (2, 1, 3, 5),
    "seq": (5, 1, 8, 12),
    "source": (7, 1, 4, 13),
    "target": (6, 1, 9, 4),
    "past": (4, 0, 7, 2),
    "length": (20, 9, 17, 31),
    "depth": (6, 5, 7, 9),
    "height": (16, 9, 21, 30),
    "width": (20, 11, 13, 25),
    "n": (4, 1, 7, 9),
    "m": (6, 1, 3, 11),
}
"""Sizes of the usual dims: the example's, then those of each judging round."""


@dataclass(frozen=True)
class Entry:
    """One model of the table."""

    name: str
    build: Callable[[], nn.Module]
    make: Maker
    """From sizes by name to a tuple of arguments, a dict of keyword arguments, or a dict of `args` and `kwargs`."""
    dims: Mapping[str, str]
    """The axes of every input, in anyshape's notation."""
    columns: Mapping[str, tuple[int, ...]]
    """For each dim the example's size, then the judging ones."""
    sizes: Mapping[str, str] = field(default_factory=dict)
    """What a user would have to declare besides, such as a past that may be empty."""
    own_inputs: bool = False
    """Whether anyshape gets `make` instead of an example, because the inputs depend on each other."""

    @property
    def source(self) -> str:
        return self.name.split(".")[0]

    @property
    def example(self) -> dict[str, int]:
        return {dim: column[0] for dim, column in self.columns.items()}

    @property
    def rounds(self) -> list[dict[str, int]]:
        """All sizes to judge at; the example's come first. Without dims, three rounds of other contents."""
        length = max([len(column) for column in self.columns.values()] or [3])
        return [{dim: column[i % len(column)] for dim, column in self.columns.items()} for i in range(length)]

    def call(self, sizes: Sizes, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        torch.manual_seed(seed)
        made = self.make(**sizes)
        if isinstance(made, tuple):
            return made, {}
        return (made["args"], made["kwargs"]) if set(made) == {"args", "kwargs"} else ((), dict(made))

    def built(self) -> nn.Module:
        torch.manual_seed(0)
        return self.build().eval()


# ---- inputs written down as notation


@dataclass(frozen=True)
class Input:
    """One tensor: its axes in anyshape's notation and how to fill a shape."""

    notation: str
    fill: Callable[[list[int]], torch.Tensor]


def floats(notation: str) -> Input:
    return Input(notation, torch.randn)


def positive(notation: str) -> Input:
    return Input(notation, lambda shape: torch.rand(shape) + 0.1)


def ids(notation: str, below: int = 50, least: int = 0) -> Input:
    return Input(notation, lambda shape: torch.randint(least, below, shape))


def ones(notation: str) -> Input:
    return Input(notation, lambda shape: torch.ones(shape, dtype=torch.int64))


def padding(notation: str) -> Input:
    """A mask of ones whose rows end early, except the first."""
    return Input(notation, lambda shape: ragged(*shape).long())


def ragged(batch: int, length: int) -> torch.Tensor:
    """True where a row has content: the first row is full, others end up to two earlier.

    Not more, and at the end: a query that may look at nothing, for instance because its window of four holds padding
    alone, has no defined answer.
    """
    ends = torch.tensor([max(length - row % 3, 1) for row in range(batch)])
    return torch.arange(length) < ends[:, None]


def dims_in(notations: Sequence[str]) -> list[str]:
    names = [name for notation in notations for name in re.findall(r"[a-z][a-z0-9_]*", notation)]
    return [name for name in dict.fromkeys(names) if name not in ("min", "max", "_")]


def shape_of(notation: str, sizes: Sizes) -> list[int]:
    return [int(eval(axis, {"__builtins__": {}}, dict(sizes))) for axis in notation.split()]


def plain(
    name: str,
    build: Callable[[], nn.Module],
    inputs: Mapping[str, Input],
    *,
    sizes: Mapping[str, str] | None = None,
    keywords: bool = False,
    constants: Mapping[str, Any] | None = None,
    **columns: tuple[int, ...],
) -> Entry:
    """An entry whose inputs do not depend on each other."""
    dims = {key: value.notation for key, value in inputs.items()}
    names = dims_in(list(dims.values()))

    def make(**given: int) -> Any:
        made = {key: value.fill(shape_of(value.notation, given)) for key, value in inputs.items()}
        return {**made, **(constants or {})} if keywords else tuple(made.values())

    parameters = [inspect.Parameter(dim, inspect.Parameter.KEYWORD_ONLY) for dim in names]
    make.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    chosen = {dim: columns.get(dim) or COLUMNS[dim] for dim in names}
    return Entry(name, build, make, dims, chosen, sizes or {})


def own(
    name: str,
    build: Callable[[], nn.Module],
    make: Maker,
    dims: Mapping[str, str],
    *,
    sizes: Mapping[str, str] | None = None,
    own_inputs: bool = True,
    **columns: tuple[int, ...],
) -> Entry:
    """An entry with a function for its inputs; the function's parameters are the dims."""
    names = list(inspect.signature(make).parameters)
    chosen = {dim: columns.get(dim) or COLUMNS[dim] for dim in names}
    return Entry(name, build, make, dims, chosen, sizes or {}, own_inputs)


def model(forward: Callable[..., Any], **parts: Any) -> nn.Module:
    """A model of one function, with `self` first, and its parts."""
    made: nn.Module = type("Model", (nn.Module,), {"forward": forward})()
    for name, part in parts.items():
        setattr(made, name, part)
    return made


def under(prefix: str, entries: Sequence[Entry]) -> list[Entry]:
    """The entries under their full names."""
    return [replace(entry, name=f"{prefix}.{entry.name}") for entry in entries]
