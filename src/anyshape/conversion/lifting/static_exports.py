"""Static exports at a few small sizes; they tell most where every dim has another size each time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass, LiftConstantsToInitializersPass, RemoveUnusedNodesPass

from anyshape.conversion.candidates import Job
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Size, dim_symbol
from anyshape.sizes.notation import Sizes

_SMALLEST = 3
"""A size of 1 or 2 is everywhere, and graphs are simpler there."""


@dataclass(frozen=True)
class StaticExport:
    """One static export; `at` are the sizes of the free axes."""

    sizes: Sizes
    at: Mapping[Size, int]
    model: ir.Model


def free_axes(job: Job) -> dict[Size, tuple[int, int]]:
    """A symbol for every size that an input has -> which input and axis show it; an expression counts as one size."""
    found: dict[Size, tuple[int, int]] = {}
    taken = {str(e): e for row in job.spec.axes.values() for e in row if e is not None}
    names = {text: text if e.is_name else f"size_{k}" for k, (text, e) in enumerate(taken.items())}
    for index, leaf in enumerate(job.names):
        for axis, expression in enumerate(job.spec.axes.get(leaf, ())):
            if expression is not None:
                found.setdefault(dim_symbol(names[str(expression)]), (index, axis))
    return found


def calls(job: Job) -> Iterator[tuple[Sizes, tuple[Any, ...]]]:
    """Sizes that the module takes, the most telling first, with inputs of these sizes."""
    for sizes in itertools.islice(_telling_sizes(job), budgets.MOST_STATIC_EXPORTS_TRIED):
        if (values := _inputs_at(job, sizes)) is not None:
            yield sizes, values


def largest_call(job: Job) -> tuple[Sizes, tuple[Any, ...]] | None:
    """The largest size of every dim that has one; None where no dim has, or where that is too large to run."""
    tops = {dim: declared.nearest(2**31) for dim, declared in job.spec.ranges.items() if not declared.is_open}
    sizes = {**job.spread()[0], **tops}
    values = _inputs_at(job, sizes) if tops else None
    return None if values is None else (sizes, values)


def _inputs_at(job: Job, sizes: Sizes) -> tuple[Any, ...] | None:
    shapes = [job.spec.shape(name, sizes, tuple(value.shape)) for name, value in job.leaves if name in job.spec.axes]
    return job.values_at(sizes) if sum(map(math.prod, shapes)) <= budgets.MOST_ELEMENTS_OF_A_STATIC_EXPORT else None


def _telling_sizes(job: Job) -> Iterator[Sizes]:
    """Every dim different each time, and from every other dim; then whatever else the declaration admits."""
    spread = [sizes for sizes in job.spread() if min(sizes.values(), default=0) >= _SMALLEST]
    pools = {dim: sorted({sizes[dim] for sizes in spread}, key=_plainness) for dim in job.spec.ranges}
    yield from _sizes_apart(pools)
    yield from _different_first(sorted(spread, key=lambda sizes: sum(map(_plainness, sizes.values()))))


def _plainness(size: int) -> float:
    """Small primes first."""
    is_prime = all(size % k for k in range(2, math.isqrt(size) + 1))
    return size if is_prime else 40 + 2 * size


def _sizes_apart(pools: Mapping[str, Sequence[int]]) -> Iterator[Sizes]:
    """No size twice; each dim in an order of its own, since dims that grow side by side cannot be told apart."""
    columns = dict(zip(pools, _columns_of_sizes(list(pools.values())), strict=True))
    for start in (0, budgets.STATIC_EXPORTS):
        for row in range(budgets.STATIC_EXPORTS):
            places = [start + (row + 2 * turn) % budgets.STATIC_EXPORTS for turn in range(len(columns))]
            if all(place < len(column) for place, column in zip(places, columns.values(), strict=True)):
                yield {dim: column[place] for (dim, column), place in zip(columns.items(), places, strict=True)}


def _columns_of_sizes(pools: Sequence[Sequence[int]]) -> list[list[int]]:
    """Odd and even sizes in turn, as far as there are both: what is rounded shows only then."""
    used: set[int] = set()
    columns: list[list[int]] = [[] for _ in pools]
    for turn in range(2 * budgets.STATIC_EXPORTS):
        for pool, column in zip(pools, columns, strict=True):
            left = sorted((size for size in pool if size not in used), key=lambda size: (size + turn) % 2 == 0)
            column.extend(left[:1])
            used.update(left[:1])
    return columns


def _different_first(sorted_sizes: Sequence[Sizes]) -> Iterator[Sizes]:
    """Those first in which every dim has a size that it did not have before."""
    seen: dict[str, set[int]] = {}
    later = []
    for sizes in sorted_sizes:
        if any(size in seen.get(dim, ()) for dim, size in sizes.items()):
            later.append(sizes)
            continue
        for dim, size in sizes.items():
            seen.setdefault(dim, set()).add(size)
        yield sizes
    yield from later


def observe(job: Job, sizes: Sizes, values: tuple[Any, ...], export: Callable[[Job], ir.Model]) -> StaticExport:
    """One export at these sizes, with all its constants as initializers."""
    leaves = tuple((name, value) for name, value in zip(job.names, values, strict=True))
    model = export(replace(job, leaves=leaves))
    if model.functions:
        InlinePass()(model)
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    RemoveUnusedNodesPass()(model)
    at = {symbol: int(values[index].shape[axis]) for symbol, (index, axis) in free_axes(job).items()}
    return StaticExport(sizes, at, model)
