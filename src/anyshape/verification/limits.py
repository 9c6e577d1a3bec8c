"""What the model itself cannot do in PyTorch: a bound, a multiple, a tie, a relation. Found by asking it.

A failing size is reduced to the dims that cause it; guard constants and lengths of tables are tried as bounds first, then
bisection. What no rule explains is kept as it is and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from anyshape.declaration.notation import Condition, SizeRange, parse_condition

Sizes = dict[str, int]
_LARGEST_MULTIPLE = 128
_FORMS: tuple[tuple[str, Callable[[int, int], int]], ...] = (
    ("{} + {}", lambda a, b: a + b),
    ("{} - {}", lambda a, b: a - b),
    ("{} * {}", lambda a, b: a * b),
)


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
    """The limits found so far. Asks the model, remembers, and moves proposed sizes inside."""

    def __init__(
        self,
        runs: Callable[[Sizes], Exception | None],
        ranges: Mapping[str, SizeRange],
        base: Mapping[str, int],
        constants: Iterable[int],
        suggestions: Iterable[Condition] = (),
    ) -> None:
        self._error_at = runs
        self._ranges = ranges
        self.base = dict(base)
        self._constants = sorted(set(constants))
        self._suggestions = tuple(suggestions)
        self.limits: list[Limit] = []
        self.pins: list[Pin] = []
        self.unexplained: list[tuple[Sizes, Exception]] = []

    def suggest(self, conditions: Iterable[Condition]) -> None:
        """Guards of a trace: candidates for relations between dims."""
        self._suggestions = (*self._suggestions, *conditions)

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return all(limit.condition.holds(sizes) for limit in self.limits)

    def admit(self, sizes: Sizes) -> Sizes | None:
        """The sizes moved inside the limits, where a small move does it."""
        if self.holds(sizes):
            return sizes
        moved = dict(sizes)
        for limit in self.limits:
            if not limit.condition.holds(moved):
                moved = self._move(moved, limit.condition)
        return moved if self.holds(moved) else None

    def _move(self, sizes: Sizes, condition: Condition) -> Sizes:
        names = condition.names
        last = names[-1]
        for distance in range(_LARGEST_MULTIPLE + 1):
            for size in (sizes[last] - distance, sizes[last] + distance):
                if size in self._ranges[last] and condition.holds({**sizes, last: size}):
                    return {**sizes, last: size}
        if condition.relation == "==" and condition.left.is_name and condition.right.is_name:
            return {**sizes, condition.left.text: sizes[condition.right.text]}
        if condition.left.is_name and not condition.right.names:
            return {**sizes, last: condition.right.value({})}
        return sizes

    # ---- which dims move at all

    def probe(self) -> None:
        """Find ties, multiples and pins: which dims move alone, in steps, together with others, or not at all."""
        for dim in self.base:
            if not self._moves(dim) and not self._moves_in_steps(dim) and not self._moves_with_another(dim):
                self._pin(dim)

    def _candidates(self, dim: str) -> list[int]:
        box, size = self._ranges[dim], self.base[dim]
        near = (size + box.step, size - box.step, size + 2 * box.step, 2 * size, 2 * size + 1, 3 * size)
        return [s for s in dict.fromkeys(near) if s in box and s != size]

    def _moves(self, dim: str) -> bool:
        candidates = self._candidates(dim)
        if not candidates:
            return True
        near = candidates[:3]
        return any(self.runs({**self.base, dim: size}) for size in near)

    def _moves_in_steps(self, dim: str) -> bool:
        size = self.base[dim]
        for step in range(2, _LARGEST_MULTIPLE + 1):
            rest = size % step
            ahead = [size + step, size + 2 * step]
            if all(s in self._ranges[dim] for s in ahead) and all(self.runs({**self.base, dim: s}) for s in ahead):
                broken = {**self.base, dim: size + 1}
                self._add(f"{dim} % {step} == {rest}", broken)
                return True
        return False

    def _moves_with_another(self, dim: str) -> bool:
        """Another dim of the same size that must move along: a tie."""
        partners = [other for other in self.base if other != dim and self.base[other] == self.base[dim]]
        for other in partners:
            for size in self._candidates(dim)[:3]:
                if size in self._ranges[other] and self.runs({**self.base, dim: size, other: size}):
                    first, second = sorted((dim, other), key=list(self.base).index)
                    condition = f"{second} == {first}"
                    if condition not in map(str, self.limits):
                        self._add(condition, {**self.base, dim: size})
                    return True
        return False

    def _pin(self, dim: str) -> None:
        size = min(self._candidates(dim))
        broken = {**self.base, dim: size}
        self.pins.append(Pin(dim, self.base[dim], broken, self._error_at(broken)))

    def probe_tables(self, affordable: Callable[[Sizes], bool]) -> None:
        """Run one size beyond every table of the model: where a range is open, this is how its end is found."""
        for dim, declared in self._ranges.items():
            for constant in self._constants:
                sizes = {**self.base, dim: declared.nearest(constant + 1)}
                if constant < self.base[dim] or not self.holds(sizes):
                    continue
                if not affordable(sizes):
                    break
                if not self.runs(sizes):
                    self.explain(sizes)
                    break

    # ---- why does it fail there?

    def explain(self, sizes: Sizes) -> bool:
        """Find the limit that a failing size violates; False where no rule is found."""
        cause = self._reduce(sizes)
        error = self._error_at(cause)
        if error is None:
            return True  # it runs: nothing to explain
        moved = [dim for dim in cause if cause[dim] != self.base[dim]]
        found = False
        if len(moved) == 1:
            found = self._explain_alone(moved[0], cause)
        elif len(moved) == 2:
            found = self._explain_pair(moved[0], moved[1], cause)
        if not found:
            self.unexplained.append((cause, error))
        return found

    def runs(self, sizes: Sizes) -> bool:
        return self._error_at(sizes) is None

    def _reduce(self, sizes: Sizes) -> Sizes:
        """Set every dim that does not matter back to the base."""
        cause = dict(sizes)
        for dim in cause:
            reduced = {**cause, dim: self.base[dim]}
            if self._error_at(reduced) is not None:
                cause = reduced
        return cause

    def _explain_alone(self, dim: str, cause: Sizes) -> bool:
        failing, size = cause[dim], self.base[dim]
        step = self._step_between(dim, cause)
        if step is not None:
            self._add(f"{dim} % {step} == {size % step}", cause)
            return True
        boundary = self._boundary(dim, size, failing, self.base)
        beyond = boundary + (1 if failing > size else -1)
        if other := self._depends_on(dim, beyond):
            return self._explain_by_frontier(dim, other[0], {**self.base, dim: beyond}, other[1])
        self._add(f"{dim} {'<=' if failing > size else '>='} {boundary}", cause)
        return not self._contradicted()

    def _depends_on(self, dim: str, beyond: int) -> tuple[str, int] | None:
        """Another dim at whose smaller or larger size this one may go further: the bound is a joint one."""
        for other, declared in self._ranges.items():
            size = self.base[other]
            if other == dim:
                continue
            for moved in (
                declared.nearest(max(declared.lo, size // 2)),
                declared.nearest(size - 1),
                declared.nearest(size + 1),
            ):
                if moved != size and self.runs({**self.base, dim: beyond, other: moved}):
                    return other, moved
        return None

    def _step_between(self, dim: str, cause: Sizes) -> int | None:
        """A multiple: sizes on both sides of the failing one run."""
        size, failing = self.base[dim], cause[dim]
        direction = 1 if failing > size else -1
        beyond = [failing + direction * k for k in range(1, 9)]
        running = [s for s in beyond if s in self._ranges[dim] and self.runs({**self.base, dim: s})]
        if not running:
            return None
        for step in range(2, _LARGEST_MULTIPLE + 1):
            if all((s - size) % step == 0 for s in running) and (failing - size) % step:
                nearby = (size + step, size + 2 * step)
                if all(self.runs({**self.base, dim: s}) for s in nearby if s in self._ranges[dim]):
                    return step
        return None

    def _boundary(self, dim: str, running: int, failing: int, base: Mapping[str, int]) -> int:
        """The last size that runs on the way from one that runs to one that does not."""
        direction = 1 if failing > running else -1
        for constant in self._constants:
            if min(running, failing) <= constant <= max(running, failing) and constant + direction in range(
                min(running, failing), max(running, failing) + 1
            ):
                here, next_one = {**base, dim: constant}, {**base, dim: constant + direction}
                if self.runs(here) and not self.runs(next_one):
                    return constant
        while abs(failing - running) > 1:
            middle = (running + failing) // 2
            if self.runs({**base, dim: middle}):
                running = middle
            else:
                failing = middle
        return running

    def _explain_pair(self, d: str, e: str, cause: Sizes) -> bool:
        for condition in self._suggestions:
            if set(condition.names) <= {d, e} and condition.holds(self.base) and not condition.holds(cause):
                self._add(str(condition), cause)
                if not self._contradicted():
                    return True
                self.limits.pop()
        return self._explain_by_frontier(d, e, cause)

    def _explain_by_frontier(self, d: str, e: str, cause: Sizes, other: int | None = None) -> bool:
        """The last running `d` at two sizes of `e` tells a sum from a difference from a product."""
        points = []
        far = self._far(d, cause[d])
        for at in dict.fromkeys((cause[e], (cause[e] + self.base[e]) // 2 if other is None else other)):
            base = {**self.base, e: at}
            if self.runs(base) and not self.runs({**base, d: far}):
                points.append((self._boundary(d, self.base[d], far, base), at))
        if len(points) < 2:
            return False
        relation = "<=" if cause[d] > self.base[d] else ">="
        for form, value in _FORMS:
            bounds = {value(a, b) for a, b in points}
            if len(bounds) != 1:
                continue
            bound = bounds.pop()
            text = (
                f"{d} {relation} {e}" if form == "{} - {}" and bound == 0 else f"{form.format(d, e)} {relation} {bound}"
            )
            self._add(text, {**cause, d: far})
            if not self._contradicted():
                return True
            self.limits.pop()
        return False

    def _far(self, dim: str, failing: int) -> int:
        """A size well beyond a failing one, in the same direction."""
        return max(0, failing + 2 * (failing - self.base[dim]))

    def _add(self, condition: str, broken: Sizes) -> None:
        self.limits.append(Limit(parse_condition(condition), self._error_at(broken), dict(broken)))

    def _contradicted(self) -> bool:
        return not self.limits[-1].condition.holds(self.base)

    def describe(self) -> Iterator[str]:
        yield from map(str, self.limits)


def effective_range(declared: SizeRange, limits: Iterable[Limit], dim: str) -> SizeRange:
    """A declared range as the limits on this dim alone leave it."""
    lo, hi, step = declared.lo, declared.hi, declared.step
    for condition in (limit.condition for limit in limits):
        if condition.names != (dim,) or not condition.right.text.lstrip("-").isdecimal():
            continue
        number = condition.right.value({})
        if condition.left.is_name and condition.relation == "<=":
            hi = number if hi is None else min(hi, number)
        elif condition.left.is_name and condition.relation == ">=":
            lo = max(lo, number)
    if declared.values is not None:
        kept = tuple(v for v in declared.values if all(_allows(limit, dim, v) for limit in limits))
        return SizeRange(lo=kept[0], hi=kept[-1], values=kept) if kept else declared
    if (lo, hi) == (declared.lo, declared.hi):
        return declared
    lo = declared.lo + -(-(lo - declared.lo) // step) * step
    return SizeRange(lo, hi, step) if hi is None else SizeRange(lo, max(lo, hi), step)


def _allows(limit: Limit, dim: str, size: int) -> bool:
    return limit.condition.names != (dim,) or limit.condition.holds({dim: size})
