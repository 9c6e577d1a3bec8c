"""How the sizes of several calls hang together: which parts of a call are dims, how the others follow, by which steps.

Places that move together are a part. Several structures may fit the calls; which of them is meant, the model is asked,
at the calls' own sizes in new combinations. Where `b` is `a + 1` in both calls, the call with `a` of the one and `b` of
the other tells: a model that runs there, both ways round, does not tie them. No other sizes are needed, so that neither
a step nor a bound misleads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from anyshape.model.proposal.probe import Place, Shapes
from anyshape.sizes import budgets
from anyshape.sizes.fit import Column, Formula, FormulaKind, are_squares, formulas, largest_step

_T = TypeVar("_T")


@dataclass(frozen=True)
class CallPart:
    """Places that have the same size in every call, at the same axis."""

    places: tuple[Place, ...]
    column: Column
    follower: bool = False
    """Whether it follows other sizes by what it is, a mask or a number: models often take other sizes, too."""

    @property
    def is_number(self) -> bool:
        return self.places[0][1] is None


@dataclass(frozen=True)
class Structure:
    """A formula for each part that follows others, None for each that is a dim."""

    parts: tuple[CallPart, ...]
    formulas: tuple[Formula | None, ...]

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(index for index, formula in enumerate(self.formulas) if formula is None)

    def bases(self, index: int) -> frozenset[int]:
        """The dims that a part follows; itself where it is one."""
        formula = self.formulas[index]
        return frozenset({index}) if formula is None else frozenset().union(*map(self.bases, formula.of))

    def alike(self, dim: int) -> Iterator[Place]:
        """The places that have the size of a dim itself."""
        for index, formula in enumerate(self.formulas):
            if index == dim or (formula and formula.kind == FormulaKind.SAME and formula.of == (dim,)):
                yield from self.parts[index].places

    def sizes(self, dims: Mapping[int, int]) -> dict[Place, int]:
        """The size of every place where the dims have these sizes."""
        return self.spread({index: self._size(index, dims) for index in range(len(self.parts))})

    def spread(self, by_part: Mapping[int, _T]) -> dict[Place, _T]:
        """What is known of the parts, for every place."""
        return {place: by_part[index] for index, part in enumerate(self.parts) for place in part.places}

    def _size(self, index: int, dims: Mapping[int, int]) -> int:
        formula = self.formulas[index]
        return dims[index] if formula is None else formula.value({base: self._size(base, dims) for base in formula.of})

    def is_sound(self) -> bool:
        """Whether every part leads to dims, and none back to itself."""
        return all(self._leads_to_dims(index, ()) for index in range(len(self.parts)))

    def _leads_to_dims(self, index: int, above: tuple[int, ...]) -> bool:
        formula = self.formulas[index]
        if index in above or formula is None:
            return index not in above
        return all(self._leads_to_dims(base, (*above, index)) for base in formula.of)


# ---- which structure is meant

Options = Mapping[int, tuple[Formula | None, ...]]
"""For each part that may follow others: the formulas; None: it is a dim after all."""

_TRUSTED = (FormulaKind.SAME, FormulaKind.SUM, FormulaKind.OFFSET, FormulaKind.LONG_SUM)


class Asked(Protocol):
    """Tells whether the model runs with some places at other sizes."""

    def runs(self, sizes: Mapping[Place, int]) -> bool: ...


@dataclass(frozen=True)
class Settled:
    """The structure, and what else would fit the calls and the model just as well."""

    structure: Structure
    rivals: tuple[Structure, ...] = ()
    unsettled: tuple[int, ...] = ()
    """Parts that do not move alone, and of which no formula runs either: the plainest was taken."""


def settle(parts: Sequence[CallPart], example: int, model: Asked, still: Collection[int] = ()) -> Settled:
    """The most general structure that the model runs with.

    `example` is the call that it is asked with, `still` are the sizes of axes that do not move. Followers are believed
    to follow, unless other parts would have to be tied for that alone.
    """
    believed = _settled_with(parts, example, model, still)
    content = [index for index, part in enumerate(parts) if not part.follower]
    is_free = _count_dims(believed, content) == len(content) and not believed.unsettled
    if is_free or len(content) == len(parts):
        return believed
    doubted = _settled_with([replace(part, follower=False) for part in parts], example, model, still)
    return max(believed, doubted, key=lambda settled: (not settled.unsettled, _count_dims(settled, content)))


def _count_dims(settled: Settled, among: Sequence[int]) -> int:
    return sum(dim in among for dim in settled.structure.dims)


def _settled_with(parts: Sequence[CallPart], example: int, model: Asked, still: Collection[int]) -> Settled:
    apart = Structure(tuple(parts), (None,) * len(parts))
    options: dict[int, tuple[Formula | None, ...]]
    options = {i: found for i in range(len(parts)) if (found := _formulas_of_follower(parts, i, still))}
    tied = [i for i in range(len(parts)) if i not in options and not moves_alone(apart, i, example, model)]
    options |= {i: (None, *found) for i in tied if (found := _formulas_among_tied(parts, i, tied, still))}
    structures = list(_structures(apart, options))
    first = next((n for n, structure in enumerate(structures) if _runs_with(structure, options, example, model)), None)
    if first is None:
        return Settled(_plainest_structure(apart, options), unsettled=tuple(options))
    rivals = _equally_plain(structures[first], structures[first + 1 :])
    return _best_of(structures[first], [s for s in rivals if _runs_with(s, options, example, model)], example, model)


# ---- what may follow what


def _formulas_of_follower(parts: Sequence[CallPart], index: int, still: Collection[int]) -> tuple[Formula, ...]:
    """What a follower follows: the size that is its own or, for an axis, a sum; nothing for other parts."""
    if not parts[index].follower:
        return ()
    trusted = _TRUSTED[:1] if parts[index].is_number else _TRUSTED
    bases = [i for i, part in enumerate(parts) if not part.follower]
    found = [formula for formula in _formulas_over(parts, index, bases, still) if formula.kind in trusted]
    return tuple(found[: budgets.MOST_FORMULAS_OF_A_COLUMN])


def _formulas_among_tied(
    parts: Sequence[CallPart], index: int, tied: Sequence[int], still: Collection[int]
) -> tuple[Formula, ...]:
    """The formulas over parts that do not move alone either, else over all that follow nothing by what they are."""
    others = [i for i, part in enumerate(parts) if i != index and (i in tied or not part.follower)]
    found = _formulas_over(parts, index, others, still)
    # of two equal ones the later follows the earlier
    found = [formula for formula in found if formula.kind != FormulaKind.SAME or formula.of[0] < index]
    among_tied = [formula for formula in found if set(formula.of) <= set(tied)]
    return tuple(among_tied or found)[: budgets.MOST_FORMULAS_OF_A_COLUMN]


def _formulas_over(
    parts: Sequence[CallPart], index: int, bases: Sequence[int], still: Collection[int]
) -> list[Formula]:
    found = formulas(parts[index].column, [parts[i].column for i in bases], still)
    return [replace(formula, of=tuple(bases[i] for i in formula.of)) for formula in found]


# ---- structures, the most general first


def _structures(apart: Structure, options: Options) -> Iterator[Structure]:
    # as many formulas for each part as the number of combinations allows; the plainest of each part always
    most = next(
        most
        for most in range(budgets.MOST_FORMULAS_OF_A_COLUMN, -1, -1)
        if math.prod(len(possible[: most + 1]) for possible in options.values()) <= budgets.MOST_STRUCTURES_OF_CALLS
    )
    choices = itertools.product(*(possible[: most + 1] for possible in options.values()))
    found = [_structure_with(apart, dict(zip(options, choice, strict=True))) for choice in choices]
    found.sort(key=lambda s: (-len(s.dims), sum(formula.kind for formula in s.formulas if formula)))
    yield from (structure for structure in found if structure.is_sound())


def _structure_with(apart: Structure, chosen: Mapping[int, Formula | None]) -> Structure:
    return replace(apart, formulas=tuple(chosen.get(index) for index in range(len(apart.parts))))


def _equally_plain(structure: Structure, others: Sequence[Structure]) -> list[Structure]:
    """Those with formulas of the same kinds: one that is less plain would have shown in the calls."""
    alike = [other for other in others if _formula_kinds(other) == _formula_kinds(structure)]
    return alike[: budgets.MOST_FORMULAS_OF_A_COLUMN]


def _formula_kinds(structure: Structure) -> list[FormulaKind | None]:
    return [None if formula is None else formula.kind for formula in structure.formulas]


def _plainest_structure(apart: Structure, options: Options) -> Structure:
    """Every part that may follow others does, in the plainest way."""
    chosen: dict[int, Formula | None] = {}
    for index, possible in options.items():
        for formula in possible:
            if formula is not None and _structure_with(apart, {**chosen, index: formula}).is_sound():
                chosen[index] = formula
                break
    return _structure_with(apart, chosen)


# ---- asking


def _runs_with(structure: Structure, options: Options, example: int, model: Asked) -> bool:
    """Whether every dim that has to do with the options moves alone, with all that follows it."""
    concerned = {base for index in options for base in structure.bases(index)}
    return all(moves_alone(structure, dim, example, model) for dim in structure.dims if dim in concerned)


def _best_of(best: Structure, rivals: Sequence[Structure], example: int, model: Asked) -> Settled:
    """The one that runs where they differ; those that run there, too, remain its rivals."""
    left: list[Structure] = []
    for rival in rivals:
        apart = next(_sizes_that_differ(best, rival, example), None)
        if apart is None:
            continue
        best_runs, rival_runs = map(model.runs, apart)
        if best_runs and rival_runs:
            left.append(rival)
        elif rival_runs:
            best = rival
    return Settled(best, tuple(left))


def _sizes_that_differ(
    one: Structure, other: Structure, example: int
) -> Iterator[tuple[dict[Place, int], dict[Place, int]]]:
    """Sizes at which two structures with the same dims differ: dim by dim, close to the example's."""
    if one.dims != other.dims:
        return
    start = _dims_at(one, example)
    for dim, change in itertools.product(one.dims, (1, 2, 3, -1)):
        dims = {**start, dim: start[dim] + change}
        if dims[dim] > 1 and one.sizes(dims) != other.sizes(dims):
            yield one.sizes(dims), other.sizes(dims)


def moves_alone(structure: Structure, dim: int, example: int, model: Asked) -> bool:
    """Whether it runs with the dim as in another call and all else as in the example, and the other way round.

    For a Python int one way is enough: `x.topk(k)` bounds it, which ties it to nothing.
    """
    column = structure.parts[dim].column
    other = max(range(len(column)), key=lambda call: (column[call] != column[example], column[call] > 1))
    enough = any if structure.parts[dim].is_number else all
    return enough(
        model.runs(structure.sizes({**_dims_at(structure, outside), dim: _broad_size(column, column[inside])}))
        for inside, outside in ((other, example), (example, other))
    )


def _dims_at(structure: Structure, call: int) -> dict[int, int]:
    return {index: structure.parts[index].column[call] for index in structure.dims}


def _broad_size(column: Column, size: int) -> int:
    """The size, or another for one at which everything is stretched to fit: for 1, and for the 0 of an empty cache."""
    least = min((n for n in column if n > 1), default=1)
    if size > 1:
        return size
    return least - 1 if least > 2 else least + largest_step(column)


# ---- in which steps a dim moves: 8, 16, 24 for a model that cuts into windows, 16, 25, 36 where it lays out squares
#
# The sizes of the calls give hints, the model decides. That it runs is not enough: where a size is divided and the rest
# kept silently, an axis of a result that has nothing to do with the dim starts to move.

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
    return bool(found) and all(still <= _axes_of_results(shapes) for shapes in found)


def _sizes_inside(column: Column, step: int) -> list[int]:
    """Up to three sizes between those of the calls."""
    sizes = [n for n in range(min(column) + step, max(column), step) if n not in column]
    return sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]}) if sizes else []


def _axes_that_stand(column: Column, outputs: Outputs) -> set[tuple[int, int, int]]:
    """The axes of results that have one size in all calls, whatever the dim is."""
    seen = [_axes_of_results(shapes) for size in sorted(set(column)) if (shapes := outputs(size)) is not None]
    return set.intersection(*seen) if seen else set()


def _axes_of_results(shapes: Shapes) -> set[tuple[int, int, int]]:
    """The number of a result, an axis of it, and its size."""
    return {(number, axis, size) for number, shape in enumerate(shapes) for axis, size in enumerate(shape)}


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
