"""In which steps a dim moves: 8, 16, 24 for a model that cuts into windows, 16, 25, 36 for one that lays out a square.

The sizes of the calls give hints, the model decides. That it runs is not enough: where a size is divided and the rest
kept silently, an axis of a result that has nothing to do with the dim starts to move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from anyshape.model.proposal.call_structures import Structure
from anyshape.model.proposal.probe import Place, Shapes
from anyshape.sizes.fit import Column, are_squares, largest_step

Outputs = Callable[[int], Shapes | None]
"""The shapes of the results with the dim at a size; None where the model does not run."""


@dataclass(frozen=True)
class DimSteps:
    """What a dim may be, as far as the calls and the model tell."""

    step: int = 1
    lowest: int = 1
    is_square: bool = False

    @property
    def notation(self) -> str | None:
        """In the notation of `sizes=`; None where it is what every dim may be."""
        if self.is_square or (self.step, self.lowest) == (1, 1):
            return None
        return f"{self.lowest}.." if self.step == 1 else f"{self.lowest}.. step {self.step}"


def steps_of(column: Column, outputs: Outputs) -> DimSteps:
    """The smallest step that the model takes between and around the sizes of the calls."""
    widest = largest_step(column)
    if widest == 1 or all(outputs(size) is not None for size in _sizes_inside(column, 1)):
        return DimSteps(lowest=min(1, *column))
    for step in range(2, widest + 1):
        if widest % step == 0 and _takes_step(step, column, outputs):
            return DimSteps(step, _lowest_size(step, min(column), outputs))
    if are_squares(column) and all(outputs(size) is not None for size in _next_squares(column)):
        return DimSteps(is_square=True)
    return DimSteps(lowest=min(1, *column))


def _takes_step(step: int, column: Column, outputs: Outputs) -> bool:
    inside = _sizes_inside(column, step)
    if any(outputs(size) is None for size in inside):
        return False
    beyond = [size for size in (max(column) + step, max(column) + 2 * step, min(column) - step) if size > 0]
    found = [shapes for size in (*inside, *beyond) if (shapes := outputs(size)) is not None]  # there may be a bound
    still = _axes_that_stand(column, outputs)
    return bool(found) and all(_keeps_axes(shapes, still) for shapes in found)


def _sizes_inside(column: Column, step: int) -> list[int]:
    """Up to three sizes between those of the calls."""
    sizes = [n for n in range(min(column) + step, max(column), step) if n not in column]
    return sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]}) if sizes else []


def _axes_that_stand(column: Column, outputs: Outputs) -> dict[Place, int]:
    """The axes of results that have one size in all calls, whatever the dim is."""
    seen = [dict(_axes_of_results(shapes)) for size in sorted(set(column)) if (shapes := outputs(size)) is not None]
    return {axis: size for axis, size in seen[0].items() if all(one.get(axis) == size for one in seen)} if seen else {}


def _keeps_axes(shapes: Shapes, still: dict[Place, int]) -> bool:
    axes = dict(_axes_of_results(shapes))
    return all(axes.get(axis) == size for axis, size in still.items())


def _axes_of_results(shapes: Shapes) -> Iterator[tuple[Place, int]]:
    for number, shape in enumerate(shapes):
        yield from (((str(number), axis), size) for axis, size in enumerate(shape))


def _lowest_size(step: int, known: int, outputs: Outputs) -> int:
    """The smallest size in these steps that runs; `known` does."""
    first = known % step or step
    low, high = 0, (known - first) // step
    if outputs(first) is not None:
        return first
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if outputs(first + middle * step) is not None else (middle, high)
    return first + high * step


def _next_squares(column: Column) -> list[int]:
    roots = [math.isqrt(size) for size in column]
    return [(max(roots) + 1) ** 2, (min(roots) - 1) ** 2 if min(roots) > 2 else (max(roots) + 2) ** 2]


def outputs_along(
    structure: Structure, dim: int, example: int, outputs: Callable[[dict[Place, int]], Shapes | None]
) -> Outputs:
    """The results with one dim at any size and all others as in the example."""
    rest = {index: structure.parts[index].column[example] for index in structure.dims}
    return lambda size: outputs(structure.sizes({**rest, dim: size}))
