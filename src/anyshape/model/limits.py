"""What the model itself cannot do in PyTorch: a bound, a multiple, a tie, a relation. Found by asking it.

Dims that cannot move by themselves are asked for ties and multiples first. Later, a failing size is reduced to the dims
that cause it and explained (`limit_search`). A limit must explain the failure and admit every size that ran, and the
model was asked at what it excludes; what no rule explains is kept as it is and said. Sizes that the user's own
`make_inputs` cannot make are no limit of the model: they are not run, and that is said.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anyshape.errors import named_line
from anyshape.model.limit_search import find_limit, multiples_of_two, tie_candidates, true_condition
from anyshape.sizes import budgets
from anyshape.sizes.conditions import narrowed_range
from anyshape.sizes.notation import Condition, SizeRange, Sizes, parse_condition
from anyshape.sizes.spelling import give_calls
from anyshape.source.spans import span_of_error


class UnmadeCallError(Exception):
    """The user's own function makes no call of a size; its exception is the cause."""


class OtherOutputsError(Exception):
    """At a size, the model returns another number of outputs than in the example, which no file can."""

    def __init__(self, count: int, wanted: int) -> None:
        super().__init__(f"the model returns {count} output{'s' * (count != 1)}, {wanted} in the example")


@dataclass(frozen=True)
class Limit:
    """One condition under which PyTorch itself runs, and the exception that it raises elsewhere."""

    condition: Condition
    error: Exception | None = None
    breaks_at: Mapping[str, int] | None = None
    """A size at which PyTorch fails."""
    of_export: bool = False
    """Whether only the export is limited, and PyTorch is not."""
    of_inputs: bool = False
    """Whether the user's own function makes no call elsewhere, so that PyTorch was not asked."""

    def __str__(self) -> str:
        return str(self.condition)


@dataclass(frozen=True)
class Pin:
    """A declared dim that PyTorch itself runs at one size only."""

    dim: str
    size: int
    breaks_at: Mapping[str, int]
    error: Exception | None


class Boundaries:
    """The limits found so far. Asks the model, remembers, and moves proposed sizes inside.

    What others read of it are values; what is known grows by asking alone.
    """

    def __init__(
        self,
        error_at: Callable[[Sizes], Exception | None],
        ranges: Mapping[str, SizeRange],
        base: Mapping[str, int],
        tables: Iterable[int],
        suggestions: Iterable[Condition] = (),
        where: Iterable[Condition] = (),
        volume: Callable[[Sizes], int] = lambda sizes: math.prod(sizes.values()),
    ) -> None:
        self._error_at = error_at
        self._ranges = ranges
        self._base: Sizes = dict(base)
        self._tables = sorted(set(tables))
        self._suggestions = tuple(suggestions)
        self.where = tuple(where)
        self._volume = volume
        self._ran: dict[tuple[int, ...], Sizes] = {}
        self._failed: dict[tuple[int, ...], Sizes] = {}
        self._patchwork: frozenset[str] = frozenset()
        self._limits: tuple[Limit, ...] = ()
        self._pins: tuple[Pin, ...] = ()
        self._unexplained: tuple[tuple[Sizes, Exception], ...] = ()

    @property
    def base(self) -> Sizes:
        """Sizes at which the model runs, from which one dim or a few are moved."""
        return self._base

    @property
    def suggestions(self) -> tuple[Condition, ...]:
        """Guards of a trace: candidates for relations between dims."""
        return self._suggestions

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Of the model, or of an export; not of the user's function that makes the calls."""
        return tuple(limit for limit in self._limits if not limit.of_inputs)

    @property
    def limits_of_inputs(self) -> tuple[Limit, ...]:
        """Where the user's own function makes a call."""
        return tuple(limit for limit in self._limits if limit.of_inputs)

    @property
    def pins(self) -> tuple[Pin, ...]:
        return self._pins

    @property
    def failures_without_a_rule(self) -> list[tuple[Sizes, Exception]]:
        """The same without those that the user's own function is to blame for."""
        return [row for row in self.unexplained if not isinstance(row[1], UnmadeCallError)]

    @property
    def unexplained(self) -> tuple[tuple[Sizes, Exception], ...]:
        """Sizes at which the model fails by no rule that was found, and how it fails there."""
        return tuple(row for row in self._unexplained if self.holds(row[0]))  # a limit may have been found since

    @property
    def places(self) -> dict[str, str]:
        """The user's line that fails beyond a limit of the model, where it is known."""
        spans = {str(one): span_of_error(one.error) for one in self.limits if one.error is not None}
        return {limit: f"{span.path}:{span.line}" for limit, span in spans.items() if span is not None}

    @property
    def notes(self) -> list[str]:
        """For the user, on sizes at which PyTorch fails by no rule, or was not asked."""
        notes = [
            f"{limit.error}; PyTorch was asked, and the file run, only where `{limit}` holds"
            for limit in self.limits_of_inputs
        ]
        notes += [
            f"limit `{limit}`: at {', '.join(f'{dim} = {size}' for dim, size in (limit.breaks_at or {}).items())} "
            f"{limit.error}, and a file always has as many"
            for limit in self.limits
            if isinstance(limit.error, OtherOutputsError)
        ]
        failing = self.failures_without_a_rule
        unmade = [row for row in self.unexplained if row not in failing]
        if unmade and not self.limits_of_inputs:
            more = f", and fails at {len(unmade) - 1} more sizes" if len(unmade) > 1 else ""
            notes.append(f"{unmade[0][1]}{more}: PyTorch was not asked, and the file not run there")
        if failing:
            sizes, error = failing[0]
            more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
            place = f"PyTorch fails at {', '.join(f'{dim} = {size}' for dim, size in sizes.items())}{more}"
            told = f"{place} by no rule that was found ({named_line(error)})"
            notes.append(f"{told}; if the call is to blame, {give_calls()}")
        return notes

    def suggest(self, conditions: Iterable[Condition]) -> None:
        self._suggestions = (*self._suggestions, *conditions)

    def rebase(self, base: Mapping[str, int]) -> None:
        """Start from other sizes at which the model runs."""
        self._base = dict(base)

    def with_limits(self, limits: Iterable[Limit]) -> Boundaries:
        """A copy that keeps to these limits, too: what a contract claims, or what an export alone needs.

        Which sizes ran is known to both: it is the same model.
        """
        other = copy.copy(self)
        other._limits = (*self._limits, *limits)  # noqa: SLF001  our own
        return other

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return all(condition.holds(sizes) for condition in self.conditions)

    @property
    def conditions(self) -> list[Condition]:
        """What the user declared, and what the model needs."""
        return [*self.where, *(limit.condition for limit in self._limits)]

    # ---- asking, and the memory of it

    @property
    def ran(self) -> list[Sizes]:
        return list(self._ran.values())

    @property
    def failed(self) -> list[Sizes]:
        """Sizes within all limits at which PyTorch fails."""
        return [sizes for sizes in self._failed.values() if self.holds(sizes)]

    def runs(self, sizes: Mapping[str, int], ties: Sequence[Condition] = ()) -> bool:
        """Whether PyTorch runs there, tied dims moved along. What was not declared is not asked."""
        followed = self.follow(sizes, ties)
        return self._is_declared(followed) and self._error(followed) is None

    def _error(self, sizes: Sizes) -> Exception | None:
        error = self._error_at(sizes)
        (self._ran if error is None else self._failed)[tuple(sizes.values())] = sizes
        return error

    def is_affordable(self, sizes: Sizes, known: Sizes) -> bool:
        """Whether a size costs little beside one that is known."""
        most = max(self._volume(known), budgets.FARTHEST_OUTSIDE_A_LIMIT * self._volume(self._base))
        return self._volume(sizes) <= max(most, budgets.SMALL_VOLUME)

    def runs_worth(self, sizes: Sizes, condition: Condition) -> int:
        """How many runs a limit is worth that such a size has shown; the end of a table was expected to be one."""
        is_large = self._volume(sizes) > budgets.SMALL_VOLUME
        is_expected = any(str(condition) == f"{dim} <= {length}" for dim in self._base for length in self._tables)
        few, many = budgets.FEWEST_RUNS_OUTSIDE_A_LIMIT, budgets.MOST_RUNS_OUTSIDE_A_LIMIT
        return few if is_large or is_expected else many

    def note_run(self, sizes: Sizes) -> None:
        """PyTorch ran there, whoever asked: a limit that says otherwise is none."""
        self._ran[tuple(sizes.values())] = sizes
        for limit in self._limits:
            if limit.error is not None and not limit.condition.holds(sizes):
                self._take_back(limit)

    def _is_declared(self, sizes: Mapping[str, int]) -> bool:
        return all(size in self._ranges[dim] for dim, size in sizes.items()) and self._is_wanted(sizes)

    def _is_wanted(self, sizes: Mapping[str, int]) -> bool:
        return all(condition.holds(sizes) for condition in self.where)

    # ---- ties: dims that follow others

    @property
    def _ties(self) -> list[Condition]:
        named = [c for c in self.conditions if c.relation == "==" and c.left.is_name]
        return [c for c in named if c.right.names or not c.others]

    def loose(self, sizes: Sizes) -> list[str]:
        """The dims that follow no other there: with `b == a or a == 1`, `b` is one of them where `a` is 1."""
        followers = {tie.left.text for tie in self._ties if not tie.others or tie.parts[0].holds(sizes)}
        return [dim for dim in self._base if dim not in followers]

    @property
    def free(self) -> list[str]:
        return self.loose(self._base)

    def follow(self, sizes: Mapping[str, int], ties: Sequence[Condition] = ()) -> Sizes:
        """The sizes with tied dims moved along, where the tie does not hold anyway."""
        moved = dict(sizes)
        for tie in (*self._ties, *ties) * 2:  # twice, since one that follows may lead another
            with contextlib.suppress(ZeroDivisionError):
                if not tie.holds(moved):
                    moved[tie.left.text] = tie.right.value(moved)
        return moved

    # ---- sizes into the limits

    def admit(self, sizes: Sizes) -> Sizes | None:
        """The sizes moved inside the limits: by a small move where one does it, else towards the base."""
        moved = self.follow(sizes)
        for condition in self.conditions:
            if not condition.holds(moved):
                moved = self.follow(self._moved_inside(moved, condition))
        for eighths in range(8, 0, -1):
            between = {dim: self._towards_base(dim, moved[dim], eighths) for dim in moved}
            if self.holds(followed := self.follow(between)) and self._is_declared(followed):
                return followed
        return None

    def _towards_base(self, dim: str, size: int, eighths: int) -> int:
        base = self._base[dim]
        return size if eighths == 8 else self.grid(dim).nearest(base + (size - base) * eighths // 8)

    def _moved_inside(self, sizes: Sizes, condition: Condition) -> Sizes:
        """The nearest sizes of one dim at which a condition holds."""
        for dim in reversed(condition.names):
            near = (sizes[dim] + sign * d for d in range(budgets.LARGEST_MULTIPLE + 1) for sign in (-1, 1))
            for size in (*near, self._furthest_inside(sizes, condition, dim), self._base[dim]):
                if size in self._ranges[dim] and condition.holds({**sizes, dim: size}):
                    return {**sizes, dim: size}
        return sizes

    def _furthest_inside(self, sizes: Sizes, condition: Condition, dim: str) -> int:
        """The furthest size from the base at which a relation such as `height*width <= 1000000` still holds."""
        grid, inside, beyond = self.grid(dim), self._base[dim], sizes[dim]
        while abs(beyond - inside) > 1:
            middle = (inside + beyond) // 2
            holds = condition.holds({**sizes, dim: middle})
            inside, beyond = (middle, beyond) if holds else (inside, middle)
        return grid.nearest(inside if beyond > inside else inside + grid.step - 1)

    # ---- which dims move at all

    def probe(self) -> None:
        """Find ties, multiples and pins: which dims move alone, in steps, together with others, or not at all."""
        for dim in self._base:
            stands = True
            for _ in range(budgets.MOST_LIMITS_PER_PROBE):
                if dim not in self.free or not self._neighbours(dim) or self._moves(dim):
                    break
                stands = stands and not any(self.runs({**self._base, dim: size}) for size in self._neighbours(dim))
                if not self._finds_relation(dim):
                    if stands and not self._runs_elsewhere(dim):
                        self._note_pin(dim)
                    break
                stands = False

    def _neighbours(self, dim: str) -> list[int]:
        """Sizes that a dim could move to, the nearest first."""
        box, size = self._ranges[dim], self._base[dim]
        near = (size + box.step, size - box.step, size + 2 * box.step, 2 * size, size // 2, 3 * size)
        inside = (s for s in dict.fromkeys(near) if s in box and s != size)
        return [s for s in inside if self._is_wanted(self.follow({**self._base, dim: s}))]

    def _moves(self, dim: str) -> bool:
        """Whether a neighbour runs; further sizes may run for being multiples, and size 1 for being broadcast."""
        return any(self.runs({**self._base, dim: size}) for size in self._telling_neighbours(dim)[:2])

    def _telling_neighbours(self, dim: str) -> list[int]:
        near = self._neighbours(dim)
        return [size for size in near if size != 1] or near

    def _finds_relation(self, dim: str) -> bool:
        """A tie, a step, or a multiple of two dims, noted; plain ones first, then those with alternatives."""
        for most_others in range(budgets.MOST_ALTERNATIVES_OF_A_LIMIT + 1):
            for conditions in self._proposals(dim):
                moved = [(dim,) if len(conditions) == 1 else condition.names for condition in conditions]
                broken = [self._sizes_that_break(one, dims) for one, dims in zip(conditions, moved, strict=True)]
                found = [
                    (self._true_beside(condition, conditions, sizes, most_others), sizes)
                    for condition, sizes in zip(conditions, broken, strict=True)
                    if sizes is not None
                ]
                true = [(condition, sizes) for condition, sizes in found if condition is not None]
                if len(true) == len(conditions) and any(s[dim] not in (1, self._base[dim]) for s in self.ran):
                    for condition, sizes in true:
                        self._note_limit(condition, sizes)
                    return True
        return False

    def _true_beside(
        self, condition: Condition, conditions: Sequence[Condition], broken: Sizes, most_others: int
    ) -> Condition | None:
        """A condition made true, with what is proposed beside it taken for granted."""
        beside = self.with_limits(Limit(other) for other in conditions if other is not condition)
        return true_condition(beside, condition, broken, most_others=most_others)

    def _proposals(self, dim: str) -> Iterator[Sequence[Condition]]:
        """Sets of conditions that would explain why a dim does not move by itself."""
        if not any(self.runs({**self._base, dim: size}) for size in self._telling_neighbours(dim)):
            for texts in tie_candidates(dim, self._base):
                ties = [parse_condition(text) for text in texts]
                if self._ties_are_new(ties) and self._move_together(ties):
                    yield self._without_chance(ties)
        yield from ([condition] for condition in self._steps(dim))
        for other in self.free:
            if other != dim:
                yield from (
                    [condition] for condition in multiples_of_two(self, *sorted((dim, other), key=self.free.index))
                )

    def _ties_are_new(self, ties: Sequence[Condition]) -> bool:
        """Whether only free dims are spoken of, and none that others follow would follow itself."""
        leading = {name for tie in self._ties for name in tie.right.names}
        return all(set(tie.names) <= set(self.free) and tie.left.text not in leading for tie in ties)

    def _move_together(self, ties: Sequence[Condition]) -> bool:
        """Whether each dim that leads runs where the others follow, and does not where they stay."""
        leading = dict.fromkeys(name for tie in ties for name in tie.right.names)
        near = ([{**self._base, dim: size} for size in self._telling_neighbours(dim)[:4]] for dim in leading)
        return all(any(self.runs(moved, ties) and not self.runs(moved) for moved in sizes) for sizes in near)

    def _without_chance(self, ties: list[Condition]) -> list[Condition]:
        """Without the ones that are equal by chance."""
        for tie in ties if len(ties) > 1 else ():
            fewer = [other for other in ties if other is not tie]
            if self._move_together(fewer):
                return self._without_chance(fewer)
        return ties

    def _sizes_that_break(self, condition: Condition, dims: Iterable[str]) -> Sizes | None:
        near = (self.follow({**self._base, dim: size}) for dim in dims for size in self._neighbours(dim))
        outside = (sizes for sizes in near if self.holds(sizes) and not condition.holds(sizes))
        return next((sizes for sizes in outside if self._error(sizes) is not None), None)

    def _steps(self, dim: str) -> Iterator[Condition]:
        size, box = self._base[dim], self._ranges[dim]
        divisors = [k for k in range(2, budgets.LARGEST_MULTIPLE + 1) if size % k == 0]
        for step in dict.fromkeys((*divisors, *range(2, budgets.MULTIPLES_TO_TRY + 1))):
            up = [s for s in (size + step, size + 2 * step) if s in box]
            ahead = up or [s for s in (size - step, size - 2 * step) if s in box and s > 1]
            if ahead and all(self.runs({**self._base, dim: s}) for s in ahead):
                yield parse_condition(f"{dim} % {step} == {size % step}")

    def _runs_elsewhere(self, dim: str) -> bool:
        """Whether a dim that stands runs at some further size; one broadcasts, and frees nothing."""
        box, size = self._ranges[dim], self._base[dim]
        wanted = (
            *range(2, budgets.SMALL_SIZES_BEFORE_A_PIN),
            *(size + k * box.step for k in (-3, -2, 3, 4, 9)),
            4 * size,
        )
        inside = [s for s in dict.fromkeys(wanted) if s in box and s != size]
        # where one dim is divided by another of its size, nothing smaller fits but one
        together = ({each: times * s for each, s in self._base.items()} for times in (2, 3))
        tried = (*({**self._base, dim: s} for s in inside), *filter(self._is_declared, together))
        return any(map(self.runs, tried))

    def _note_pin(self, dim: str) -> None:
        broken = {**self._base, dim: min(self._neighbours(dim))}
        self._pins = (*self._pins, Pin(dim, self._base[dim], broken, self._error_at(broken)))

    def probe_tables(self, affordable: Callable[[Sizes], bool]) -> None:
        """Run one size beyond every table of the model: where a range is open, this is how its end is found."""
        for dim in self.free:
            for length in self._tables:
                sizes = self.follow({**self._base, dim: self.grid(dim).nearest(length + 1)})
                if length < self._base[dim] or not self.holds(sizes) or not self._is_declared(sizes):
                    continue
                if not affordable(sizes):
                    break
                if not self.runs(sizes):
                    self.explain(sizes)
                    break

    # ---- why does it fail there?

    def explain(self, sizes: Sizes) -> bool:
        """Find the limit that a failing size violates; False where no rule is found."""
        most = max(budgets.FARTHEST_TO_EXPLAIN * self._volume(self._base), budgets.ELEMENTS_TO_EXPLAIN)
        cause = self._cause_within(sizes, most)
        error = self._error(cause)
        if error is None:
            return True  # it runs: nothing to explain
        is_worth_it = self._volume(cause) <= most and len(self._unexplained) < budgets.MOST_UNEXPLAINED_FAILURES
        found = find_limit(self, cause) if is_worth_it else None
        if found is None or self._is_patchwork(found):
            self._unexplained = (*self._unexplained, (cause, error))
            return False
        self._note_limit(found, cause)
        return True

    def _cause_within(self, sizes: Sizes, most: float) -> Sizes:
        """Set every dim that does not matter back to the base, where the call is not too large for that."""
        cause: Sizes = dict(sizes)
        for dim in self.loose(cause):
            reduced = self.follow({**cause, dim: self._base[dim]})
            if self._volume(reduced) <= most and self.holds(reduced) and self._error(reduced) is not None:
                cause = reduced
        return cause

    def _is_patchwork(self, condition: Condition) -> bool:
        """A limit with an exception for every failing size that is met is none: such ones are taken back."""
        if not _has_hole(condition):
            return False
        names = frozenset(condition.names)
        holes = [one for one in self.limits if _has_hole(one.condition) and not names.isdisjoint(one.condition.names)]
        if len(holes) >= budgets.MOST_HOLES_IN_A_DIM:
            self._patchwork |= names.union(*(limit.condition.names for limit in holes))
            for limit in holes:
                self._take_back(limit)
        return not names.isdisjoint(self._patchwork)

    def grid(self, dim: str) -> SizeRange:
        """The sizes that the limits on a dim alone leave."""
        return effective_range(self._ranges[dim], self._limits, dim)

    def _note_limit(self, condition: Condition, broken: Sizes) -> None:
        """Of PyTorch, if it was asked and failed outside; else of the function that makes the calls."""
        outside = [broken, *(sizes for sizes in self.failed if not condition.holds(sizes))]
        by_model = next((sizes for sizes in outside if not isinstance(self._error_at(sizes), UnmadeCallError)), None)
        shown = broken if by_model is None else by_model
        limit = Limit(condition, self._error_at(shown), dict(shown), of_inputs=by_model is None)
        self._limits = (*(other for other in self._limits if not _is_needless(other, condition)), limit)

    def _take_back(self, limit: Limit) -> None:
        self._limits = tuple(other for other in self._limits if other is not limit)
        if limit.breaks_at is not None and limit.error is not None:
            self._unexplained = (*self._unexplained, (limit.breaks_at, limit.error))


def _has_hole(condition: Condition) -> bool:
    return bool(condition.others) and not any(part.relation == "==" and part.right.names for part in condition.parts)


def _is_needless(limit: Limit, beside: Condition) -> bool:
    """Whether a limit with alternatives holds, as far as can be seen, wherever a later one of the same dims does."""
    names, own = limit.condition.names, limit.breaks_at is not None and bool(limit.condition.others)
    if not own or set(names) != set(beside.names) or len(names) > 2:
        return False
    sizes = (dict(zip(names, row, strict=True)) for row in itertools.product(range(64), repeat=len(names)))
    return all(limit.condition.holds(one) for one in sizes if beside.holds(one))


# ---- a range as the limits leave it


def effective_range(declared: SizeRange, limits: Iterable[Limit], dim: str) -> SizeRange:
    """A declared range as the limits on this dim alone leave it."""
    return narrowed_range(declared, (limit.condition for limit in limits), dim)
