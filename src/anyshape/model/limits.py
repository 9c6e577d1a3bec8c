"""What the model itself cannot do in PyTorch: a bound, a multiple, a tie, a relation. Found by asking it.

Dims that cannot move by themselves are asked for ties and multiples first. Later, a failing size is reduced to the dims
that cause it and explained. A limit must explain the failure and admit every size that ran; what no rule explains is
kept as it is and said.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from anyshape.model.limit_causes import find_limit, tie_candidates
from anyshape.sizes import budgets
from anyshape.sizes.conditions import narrowed_range
from anyshape.sizes.notation import Condition, SizeRange, Sizes, parse_condition


@dataclass(frozen=True)
class Limit:
    """One condition under which PyTorch itself runs, and the exception that it raises elsewhere."""

    condition: Condition
    error: Exception | None = None
    breaks_at: Mapping[str, int] | None = None
    """A size at which PyTorch fails."""
    of_export: bool = False
    """Whether only the export is limited, and PyTorch is not."""

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
    ) -> None:
        self._error_at = error_at
        self._ranges = ranges
        self._base: Sizes = dict(base)
        self._tables = sorted(set(tables))
        self._suggestions = tuple(suggestions)
        self.where = tuple(where)
        self._ran: dict[tuple[int, ...], Sizes] = {}
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
        return self._limits

    @property
    def pins(self) -> tuple[Pin, ...]:
        return self._pins

    @property
    def unexplained(self) -> tuple[tuple[Sizes, Exception], ...]:
        """Sizes at which the model fails by no rule that was found, and how it fails there."""
        return self._unexplained

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
        return all(condition.holds(sizes) for condition in self._conditions)

    @property
    def _conditions(self) -> list[Condition]:
        """What the user declared, and what the model needs."""
        return [*self.where, *(limit.condition for limit in self._limits)]

    def runs(self, sizes: Mapping[str, int], ties: Sequence[Condition] = ()) -> bool:
        """Whether PyTorch runs there, tied dims moved along. What was not declared is not asked."""
        followed = self._follow(sizes, ties)
        if not self._is_declared(followed) or self._error_at(followed) is not None:
            return False
        self._ran[tuple(followed.values())] = followed
        return True

    def _is_declared(self, sizes: Mapping[str, int]) -> bool:
        return all(size in self._ranges[dim] for dim, size in sizes.items()) and self._is_wanted(sizes)

    def _is_wanted(self, sizes: Mapping[str, int]) -> bool:
        return all(condition.holds(sizes) for condition in self.where)

    # ---- ties: dims that follow others

    @property
    def _ties(self) -> list[Condition]:
        return [c for c in self._conditions if c.relation == "==" and c.left.is_name]

    @property
    def free(self) -> list[str]:
        """The dims that follow no other."""
        followers = {tie.left.text for tie in self._ties}
        return [dim for dim in self._base if dim not in followers]

    def _follow(self, sizes: Mapping[str, int], ties: Sequence[Condition] = ()) -> Sizes:
        moved = dict(sizes)
        for tie in (*self._ties, *ties) * 2:  # twice, since one that follows may lead another
            with contextlib.suppress(ZeroDivisionError):
                moved[tie.left.text] = tie.right.value(moved)
        return moved

    # ---- sizes into the limits

    def admit(self, sizes: Sizes) -> Sizes | None:
        """The sizes moved inside the limits: by a small move where one does it, else towards the base."""
        moved = self._follow(sizes)
        for condition in self._conditions:
            if not condition.holds(moved):
                moved = self._follow(self._moved_inside(moved, condition))
        for eighths in range(8, 0, -1):
            between = {dim: self._towards_base(dim, moved[dim], eighths) for dim in moved}
            if self.holds(followed := self._follow(between)) and self._is_declared(followed):
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
            if dim not in self.free or not self._neighbours(dim) or self._moves(dim):
                continue
            stands = not any(self.runs({**self._base, dim: size}) for size in self._neighbours(dim))
            is_tied = stands and self._finds_tie(dim)
            if dim in self.free and not self._moves(dim) and not self._moves_in_steps(dim) and stands and not is_tied:
                self._note_pin(dim)

    def _neighbours(self, dim: str) -> list[int]:
        """Sizes that a dim could move to, the nearest first."""
        box, size = self._ranges[dim], self._base[dim]
        near = (size + box.step, size - box.step, size + 2 * box.step, 2 * size, size // 2, 3 * size)
        inside = (s for s in dict.fromkeys(near) if s in box and s != size)
        return [s for s in inside if self._is_wanted(self._follow({**self._base, dim: s}))]

    def _moves(self, dim: str) -> bool:
        """Whether a neighbour runs; further sizes may run for being multiples."""
        return any(self.runs({**self._base, dim: size}) for size in self._neighbours(dim)[:2])

    def _finds_tie(self, dim: str) -> bool:
        for texts in tie_candidates(dim, self._base):
            ties = [parse_condition(text) for text in texts]
            if self._ties_are_new(ties) and self._move_together(ties):
                for tie in self._without_chance(ties):
                    self._note_limit(tie, self._sizes_that_break(tie))
                return True
        return False

    def _ties_are_new(self, ties: Sequence[Condition]) -> bool:
        """Whether only free dims are spoken of, and none that others follow would follow itself."""
        leading = {name for tie in self._ties for name in tie.right.names}
        return all(set(tie.names) <= set(self.free) and tie.left.text not in leading for tie in ties)

    def _move_together(self, ties: Sequence[Condition]) -> bool:
        """Whether each dim that leads runs where the others follow, and does not where they stay."""
        leading = dict.fromkeys(name for tie in ties for name in tie.right.names)
        return all(
            any(
                self.runs(moved, ties) and not self.runs(moved)
                for moved in ({**self._base, dim: size} for size in self._neighbours(dim)[:4])
            )
            for dim in leading
        )

    def _without_chance(self, ties: list[Condition]) -> list[Condition]:
        """Without the ones that are equal by chance."""
        for tie in ties if len(ties) > 1 else ():
            fewer = [other for other in ties if other is not tie]
            if self._move_together(fewer):
                return self._without_chance(fewer)
        return ties

    def _sizes_that_break(self, tie: Condition) -> Sizes:
        dim = tie.right.names[0]
        sizes = [{**self._base, dim: size} for size in self._neighbours(dim)]
        return next(s for s in sizes if not tie.holds(s) and self._error_at(s) is not None)

    def _moves_in_steps(self, dim: str) -> bool:
        size, box = self._base[dim], self._ranges[dim]
        divisors = [k for k in range(2, budgets.LARGEST_MULTIPLE + 1) if size % k == 0]
        for step in dict.fromkeys((*divisors, *range(2, budgets.MULTIPLES_TO_TRY + 1))):
            up = [s for s in (size + step, size + 2 * step) if s in box]
            ahead = up or [s for s in (size - step, size - 2 * step) if s in box]
            if ahead and all(self.runs({**self._base, dim: s}) for s in ahead):
                self._note_limit(parse_condition(f"{dim} % {step} == {size % step}"), self._first_that_breaks(dim))
                return True
        return False

    def _first_that_breaks(self, dim: str) -> Sizes:
        moved = [{**self._base, dim: size} for size in self._neighbours(dim)]
        return next((s for s in map(self._follow, moved) if self._error_at(s) is not None), moved[0])

    def _note_pin(self, dim: str) -> None:
        broken = {**self._base, dim: min(self._neighbours(dim))}
        self._pins = (*self._pins, Pin(dim, self._base[dim], broken, self._error_at(broken)))

    def probe_tables(self, affordable: Callable[[Sizes], bool]) -> None:
        """Run one size beyond every table of the model: where a range is open, this is how its end is found."""
        for dim in self.free:
            for length in self._tables:
                sizes = self._follow({**self._base, dim: self.grid(dim).nearest(length + 1)})
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
        cause = self._cause_within(sizes)
        error = self._error_at(cause)
        if error is None:
            return True  # it runs: nothing to explain
        found = find_limit(self, cause) if len(self._unexplained) < budgets.MOST_UNEXPLAINED_FAILURES else None
        if found is None:
            self._unexplained = (*self._unexplained, (cause, error))
        else:
            self._note_limit(found, cause)
        return found is not None

    def _cause_within(self, sizes: Sizes) -> Sizes:
        """Set every dim that does not matter back to the base."""
        cause: Sizes = dict(sizes)
        for dim in self.free:
            reduced = self._follow({**cause, dim: self._base[dim]})
            if self.holds(reduced) and self._error_at(reduced) is not None:
                cause = reduced
        return cause

    def grid(self, dim: str) -> SizeRange:
        """The sizes that the limits on a dim alone leave."""
        return effective_range(self._ranges[dim], self._limits, dim)

    def explains(self, condition: Condition, cause: Sizes) -> bool:
        """Whether a condition fails there and holds at the base and at every size that ran."""
        return not condition.holds(cause) and all(map(condition.holds, (self._base, *self._ran.values())))

    def _note_limit(self, condition: Condition, broken: Sizes) -> None:
        self._limits = (*self._limits, Limit(condition, self._error_at(broken), dict(broken)))


# ---- a range as the limits leave it


def effective_range(declared: SizeRange, limits: Iterable[Limit], dim: str) -> SizeRange:
    """A declared range as the limits on this dim alone leave it."""
    return narrowed_range(declared, (limit.condition for limit in limits), dim)
