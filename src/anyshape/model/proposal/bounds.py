"""How far each dim of a proposal goes, and whether all go together: tried in eager, as a check would run the model.

Every dim is followed down and up, the others as in the example; then all move at once by lot, and at last all stand at
their upper ends. A dim that breaks the others is left out, a bound that holds only alone is not proposed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from anyshape.declaration.calls import Signature
from anyshape.declaration.spec import declare
from anyshape.declaration.targets import Target
from anyshape.model.kept_state import table_lengths
from anyshape.model.oracle import from_example
from anyshape.model.proposal.probe import Place, RunBudget
from anyshape.model.proposal.proposal import Dim, may_be_features
from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange, Sizes

# ---- one declaration, tried at other sizes

_MOST_TIMES = 8
"""A trial takes little work, or so many times as much as the example."""


_GROWTH = 1.25
"""Between what is linear in the elements and attention, which is not."""


class SpentError(Exception):
    """No further run is granted, so there is no answer."""


class BoundTrials:
    """One declaration of one call."""

    def __init__(
        self,
        target: Target,
        signature: Signature,
        dims: Mapping[str, tuple[str, ...]],
        *,
        budget: RunBudget,
    ) -> None:
        self.spec = declare(signature, dims)
        self._reference = from_example(target, signature, self.spec, seed=0)
        self._shapes = {leaf.name: tuple(leaf.value.shape) for leaf in signature.leaves if leaf.is_tensor}
        self._budget = budget

    @property
    def ranks(self) -> dict[str, int]:
        """How many axes each tensor has."""
        return {leaf: len(shape) for leaf, shape in self._shapes.items()}

    def runs(self, sizes: Mapping[str, int]) -> bool:
        """Whether the model runs at these sizes, and at the example's for all other dims; SpentError at the end."""
        if self._budget.is_spent():
            raise SpentError
        with torch.no_grad():
            return self._reference.run({**self.spec.example, **sizes}).runs

    def is_small(self, sizes: Mapping[str, int]) -> bool:
        """Whether the inputs at these sizes take little memory and work, or hardly more than the example's."""
        wanted, given = self._elements({**self.spec.example, **sizes}), self._elements(self.spec.example)
        work = self._budget.work * (wanted / max(given, 1)) ** _GROWTH
        is_quick = work <= max(budgets.WORK_OF_A_TRIAL, _MOST_TIMES * self._budget.work)
        return is_quick and wanted <= max(budgets.MOST_ELEMENTS_OF_A_PROBE, 2 * given)

    def _elements(self, sizes: Mapping[str, int]) -> int:
        shapes = (self.spec.shape(leaf, sizes, shape) for leaf, shape in self._shapes.items())
        return sum(torch.Size(shape).numel() for shape in shapes)


# ---- one dim


@dataclass(frozen=True)
class Bounded:
    """A dim with its name and the sizes at which it ran; `hi` is None where no end was seen."""

    dim: Dim
    name: str
    lo: int
    hi: int | None = None

    @property
    def text(self) -> str | None:
        """In the notation of `sizes=`; None for `1..`, which needs no saying."""
        shown = str(SizeRange(self.lo, self.hi, self.dim.step))
        return None if shown == "1.." else shown


def unbounded(dim: Dim, name: str) -> Bounded:
    """Before anything was asked: from the smallest size on the grid."""
    return Bounded(dim, name, dim.size if dim.move.is_lowest else 1 + (dim.size - 1) % dim.step)


def find_bounds(trials: BoundTrials, dim: Dim, name: str, tables: Sequence[int]) -> Bounded:
    """How far a dim goes down and up, all others at their size in the example; a past may be empty."""

    def runs(size: int) -> bool:
        return trials.is_small({name: size}) and trials.runs({name: size})

    smallest = 0 if name.startswith("past") else 1
    lowest = smallest + (dim.size - smallest) % dim.step
    lo = dim.size if lowest >= dim.size else _last_that(runs, dim.size, lowest, dim.step)
    hi = None if dim.base[1] is None else _upper_end(trials, dim, name, tables, runs)
    return Bounded(dim, name, lo, hi)


def _last_that(runs: Callable[[int], bool], good: int, bad: int, step: int) -> int:
    """The last size from a good one towards another that runs, by bisection."""
    if runs(bad):
        return bad
    while abs(bad - good) > step:
        middle = good + (bad - good) // (2 * step) * step
        middle = middle if middle != good else good + (step if bad > good else -step)
        if runs(middle):
            good = middle
        else:
            bad = middle
    return good


def _upper_end(
    trials: BoundTrials, dim: Dim, name: str, tables: Sequence[int], runs: Callable[[int], bool]
) -> int | None:
    """The largest size that runs, where a larger one was seen to fail."""
    good = dim.size
    for size in _sizes_beyond(dim, tables):
        if not trials.is_small({name: size}):
            break
        if not runs(size):
            last = size - dim.step
            end = last if last > good and runs(last) else _last_that(runs, good, last, dim.step)
            return None if runs(end + 2 * dim.step) else end  # a single size that fails is no end
        good = size
    return None


def _sizes_beyond(dim: Dim, tables: Sequence[int]) -> Iterator[int]:
    """The first size above each table, on the grid of the dim; and a moderate one."""
    wanted = {length + 1 for length in tables if dim.size <= length < budgets.FURTHEST_BOUND_ASKED}
    wanted |= {4 * dim.size + 3, max(4 * dim.size + 3, budgets.MODERATE_BOUND)}
    yield from sorted({size + (dim.size - size) % dim.step for size in wanted})


# ---- all dims together

_TIMES = (1, 2, 3, -1)
"""By how many steps a dim moves in a round."""


def failing_rounds(dims: Sequence[Bounded], trials: BoundTrials) -> list[Sizes]:
    """Sizes of all dims at which the model does not run, of a dozen drawn by lot."""
    lot = random.Random(0)  # noqa: S311  sizes, not secrets
    count = range(budgets.ROUNDS_OF_ALL_DIMS)
    rounds = [{one.name: _size_after_steps(one, lot.choice(_TIMES)) for one in dims} for _ in count]
    return [sizes for sizes in rounds if not trials.runs(sizes)] if len(dims) > 1 else []


def find_breaking(dims: Sequence[Bounded], failing: Sequence[Sizes], trials: BoundTrials) -> Bounded | None:
    """The dim to leave out: the least certain one without which the others run; None where all may stay."""
    if len(failing) <= budgets.FAILING_ROUNDS_TOLERATED:
        return None
    doubtful = sorted(dims, key=lambda one: _certainty(one, trials.ranks))
    return next((one for one in doubtful if trials.runs({**failing[0], one.name: one.dim.size})), doubtful[0])


def _size_after_steps(bounded: Bounded, times: int) -> int:
    size = bounded.dim.size + bounded.dim.step * times
    return max(bounded.lo, size if bounded.hi is None else min(size, bounded.hi))


def _certainty(bounded: Bounded, ranks: Mapping[str, int]) -> tuple[bool, int, int, bool]:
    """A batch is certain, and so is what moves only with partners; an odd step may be an accident of rounding."""
    places = bounded.dim.move.steps
    are_sizes = not any(may_be_features(place, ranks.get(place[0], 0)) for place in places)
    return are_sizes, sum(axis == 0 for _, axis in places), len(places), bounded.dim.step > 1


def hold_together(trials: BoundTrials, dims: Sequence[Bounded]) -> bool:
    """Whether all upper bounds may be reached at once."""
    corner = {one.name: one.hi for one in dims if one.hi is not None}
    return len(corner) < 2 or not trials.is_small(corner) or trials.runs(corner)


# ---- from dims to dims with bounds


@dataclass
class BoundedDims:
    """Dims with their bounds, and what is to be said about them."""

    dims: list[Bounded]
    notes: list[str] = field(default_factory=list)


def bounds_of_dims(trials: BoundTrials, dims: Sequence[Dim], names: Sequence[str], module: nn.Module) -> BoundedDims:
    """The dims that run together, each from its smallest size to its largest."""
    found = BoundedDims([unbounded(dim, name) for dim, name in zip(dims, names, strict=True)])
    stages: tuple[tuple[str, Callable[[], None]], ...] = (
        ("all bounds were known", lambda: _find_all_bounds(found, trials, module)),
        ("all dims were tried together", lambda: _leave_out_breaking(found, trials)),
        ("all bounds were tried together", lambda: _release_common_bounds(found, trials)),
    )
    for what, stage in stages:
        try:
            stage()
        except SpentError:
            found.notes.append(f"the search ended before {what}")
            break
    return found


def _find_all_bounds(found: BoundedDims, trials: BoundTrials, module: nn.Module) -> None:
    tables = table_lengths(module, least_axes=2)
    for number, one in enumerate(found.dims):
        found.dims[number] = find_bounds(trials, one.dim, one.name, tables)


def _leave_out_breaking(found: BoundedDims, trials: BoundTrials) -> None:
    while failing := failing_rounds(found.dims, trials):
        breaking = find_breaking(found.dims, failing, trials)
        if breaking is None:
            break
        found.dims.remove(breaking)
        found.notes.append(note_of_joint_failure(breaking.dim))
    if failing:
        found.notes.append(note_of_a_relation(failing[0]))
        found.dims = [_without_bounds(one) for one in found.dims]


def _without_bounds(one: Bounded) -> Bounded:
    """Without the bounds that hold only where the others stand."""
    return replace(one, hi=None, lo=min(one.lo, unbounded(one.dim, one.name).lo))


def _release_common_bounds(found: BoundedDims, trials: BoundTrials) -> None:
    """Two lengths that fill one table have no bounds of their own."""
    if not hold_together(trials, found.dims):
        found.notes.append(note_of_common_bound([(one.name, one.hi) for one in found.dims if one.hi is not None]))
        found.dims = [replace(one, hi=None) for one in found.dims]


# ---- what is said about them


def basis_of(dim: Dim) -> str:
    """One clause: `axis 1 of `ids` and axis 1 of `mask` move together`."""
    return f"{places_text(dim.move.steps)} {dim.move.basis}"


def places_text(places: Iterable[Place]) -> str:
    """`axis 0 of `x`, axis 1 of `y` and 3 more`."""
    texts = [f"`{leaf}`" if axis is None else f"axis {axis} of `{leaf}`" for leaf, axis in places]
    most = budgets.MOST_NAMED_IN_A_NOTE
    if len(texts) > most + 1:
        texts = [*texts[:most], f"{len(texts) - most} more"]
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


NOTHING_VARIES = "no axis was found to vary: the model runs at the sizes of the example alone"


def note_of_coincidence(one: str, other: str, size: int) -> str:
    return (
        f"`{one}` and `{other}` are both {size} in the example and vary apart, so they are two dims; "
        "if they are meant as one, give them one name, or a second call that shows it"
    )


def note_of_joint_failure(dim: Dim) -> str:
    verb, stay = ("varies", "it stays") if len(dim.move.steps) == 1 else ("vary", "they stay")
    return f"{places_text(dim.move.steps)} {verb} alone, but not together with the other dims: {stay} static"


def note_of_a_relation(sizes: Mapping[str, int]) -> str:
    shown = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return f"each dim varies alone, but not in every combination: the model does not run at {shown}"


def note_of_common_bound(ends: Sequence[tuple[str, int]]) -> str:
    reach = " and ".join(f"`{name}` = {size}" for name, size in ends)
    return f"the model runs up to {reach} one at a time, but not at once: no upper bound is proposed"


def note_of_the_search(runs: int, *, spent: bool, late: bool) -> str:
    """How many runs, and whether they sufficed."""
    if spent:
        slow = f", since this machine took {budgets.SECONDS_UNTIL_ABSURD / 60:.0f} minutes for them" if late else ""
        return f"the search ended after {runs} runs{slow}: more axes may vary than were found"
    return f"found with {runs} runs of the model"
