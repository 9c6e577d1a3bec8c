"""The size of every output axis as an expression of the dims: the trace's own where it holds, else one that fits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyshape.sizes.notation import Expression, parse_expression

if TYPE_CHECKING:
    import torch


Shape = tuple[int, ...]
FittedAxis = int | Expression | None
_LARGEST_STRIDE = 64


@dataclass(frozen=True)
class Observation:
    """The shapes of all outputs in one run of the module."""

    sizes: Mapping[str, int]
    shapes: tuple[Shape, ...]


def observed_at(sizes: Mapping[str, int], outputs: Iterable[torch.Tensor]) -> Observation:
    return Observation(dict(sizes), tuple(tuple(output.shape) for output in outputs))


def fit_outputs(
    observations: Sequence[Observation],
    proposed: Sequence[Sequence[Expression | None]] | None,
    declared: Sequence[Expression],
    *,
    scalars: bool = False,
) -> list[tuple[FittedAxis, ...] | None]:
    """For every output and axis a number, an expression, or None where no rule fits (a size that depends on the data).

    An output whose very number of axes varies has no row at all. With `scalars`, a size that torch leaves to run time
    may depend on a number among the inputs, which is a dim as others are.
    """
    fitted: list[tuple[FittedAxis, ...] | None] = []
    for index, shape in enumerate(observations[0].shapes):
        if any(len(o.shapes[index]) != len(shape) for o in observations):
            fitted.append(None)
            continue
        row: list[FittedAxis] = []
        for axis in range(len(shape)):
            seen = [(o.sizes, o.shapes[index][axis]) for o in observations]
            hint = _hint(proposed, index, axis)
            if hint is not None and not scalars and _depends_on_data(hint, observations[0].sizes):
                row.append(None)  # that all runs agree is an accident of their data
            else:
                row.append(_fit(seen, [*([hint] if hint else []), *declared]))
        fitted.append(tuple(row))
    return fitted


def _hint(proposed: Sequence[Sequence[Expression | None]] | None, index: int, axis: int) -> Expression | None:
    if proposed is None or index >= len(proposed) or axis >= len(proposed[index]):
        return None
    return proposed[index][axis]


_AT_RUN_TIME = re.compile(r"u\d+")
"""How torch calls a size that it cannot know before the values."""


def _depends_on_data(hint: Expression, dims: Mapping[str, int]) -> bool:
    return any(_AT_RUN_TIME.fullmatch(name) for name in hint.names if name not in dims)


_Seen = Sequence[tuple[Mapping[str, int], int]]


def _fit(seen: _Seen, candidates: Sequence[Expression]) -> FittedAxis:
    """The first expression that holds in all runs, or a shorter one that means the same."""
    first = seen[0][1]
    if all(size == first for _, size in seen):
        return first
    simple = itertools.islice((form for form in _forms(seen) if _holds(form, seen)), 1)
    found = [*(candidate for candidate in candidates if _holds(candidate, seen)), *simple]
    same = [expression for expression in found if _agree(expression, found[0], list(seen[0][0]))]
    return min(same, key=lambda expression: len(expression.text), default=None)


_FAR_SIZES = (1, 2, 3, 5, 8, 13, 31, 64, 127, 513, 1000, 4097)


def _agree(one: Expression, other: Expression, dims: Sequence[str]) -> bool:
    """Whether two expressions are equal far beyond the runs too: `seq` fits the runs where `min(seq, 512)` is meant."""
    far = ({dim: size + shift * i for i, dim in enumerate(dims)} for size in _FAR_SIZES for shift in (0, 1, 7, 50))
    try:
        return all(one.value(sizes) == other.value(sizes) for sizes in far)
    except ZeroDivisionError:
        return one == other


def _holds(candidate: Expression, seen: _Seen) -> bool:
    if not set(candidate.names) <= set(seen[0][0]):
        return False  # a size that torch itself could not express in dims
    try:
        return all(candidate.value(sizes) == size for sizes, size in seen)
    except ZeroDivisionError:
        return False


def _forms(seen: _Seen) -> Iterator[Expression]:
    """Simple expressions, the simplest first; each is fitted on two runs and then has to hold in all."""
    dims = list(seen[0][0])
    yield from map(parse_expression, (*dims, *_linear(dims, seen), *_combined(dims, seen)))
    yield from _strided(dims, seen)


def _linear(dims: Sequence[str], seen: _Seen) -> Iterator[str]:
    for dim in dims:
        (a, x), (b, y) = _apart(seen, dim)
        if a != b and (y - x) % (b - a) == 0 and (y - x) // (b - a) != 0:
            slope = (y - x) // (b - a)
            yield _sum(dim if slope == 1 else f"{slope} * {dim}", x - slope * a)
        bounds = sorted({size for _, size in seen})
        yield from (f"min({dim}, {bounds[-1]})", f"max({dim}, {bounds[0]})")


def _combined(dims: Sequence[str], seen: _Seen) -> Iterator[str]:
    sizes, size = seen[0]
    for i, d in enumerate(dims):
        for e in dims[i:]:
            if e != d:
                yield _sum(f"{d} + {e}", size - sizes[d] - sizes[e])
                yield from (f"min({d}, {e})", f"max({d}, {e})")
            product = sizes[d] * sizes[e]
            if product and size % product == 0 and size:
                yield f"{d} * {e}" if size == product else f"{size // product} * {d} * {e}"
            yield _sum(f"{d} * {e}", size - product)


def _strided(dims: Sequence[str], seen: _Seen) -> Iterator[Expression]:
    """What convolutions and pools make of a size: (d + a) // b + c; none where the runs cannot tell two apart."""
    sizes, size = seen[0]
    found = []
    for dim in dims:
        for stride in range(2, _LARGEST_STRIDE + 1):
            for offset in range(stride):
                shift = size - (sizes[dim] + offset) // stride
                if _strided_holds(seen, dim, stride, offset, shift):
                    inner = dim if offset == 0 else f"({dim} + {offset})"
                    found.append(parse_expression(_sum(f"{inner} // {stride}", shift)))
    return iter(found if len(found) == 1 else ())


def _strided_holds(seen: _Seen, dim: str, stride: int, offset: int, shift: int) -> bool:
    value: Callable[[int], int] = lambda n: (n + offset) // stride + shift  # noqa: E731
    return all(value(sizes[dim]) == size for sizes, size in seen)


def _apart(seen: _Seen, dim: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """The runs with the smallest and the largest size of a dim."""
    ordered = sorted((sizes[dim], size) for sizes, size in seen)
    return ordered[0], ordered[-1]


def _sum(text: str, constant: int) -> str:
    if constant == 0:
        return text
    return f"{text} + {constant}" if constant > 0 else f"{text} - {-constant}"
