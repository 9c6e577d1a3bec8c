"""What the model itself cannot do in PyTorch: a bound, a multiple, a tie, a relation. Found by asking it.

Dims that cannot move by themselves are asked for ties and multiples first. Later, a failing size is reduced to the dims
that cause it and explained: bisection finds where it begins to fail, and a bound that moves with another dim is a joint
one. A limit must explain the failure and admit every size that ran; what no rule explains is kept as it is and said.
"""

from __future__ import annotations

import contextlib
import copy
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
        near = ([{**self._base, dim: size} for size in self._neighbours(dim)[:4]] for dim in leading)
        return all(any(self.runs(moved, ties) and not self.runs(moved) for moved in sizes) for sizes in near)

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


# ---- why does PyTorch fail at a size? The condition that it violates


def find_limit(known: Boundaries, cause: Sizes) -> Condition | None:
    """The condition that a failing size violates, as far as one explains all that is known."""
    return next((condition for condition in _conditions_to_try(known, cause) if known.explains(condition, cause)), None)


def _conditions_to_try(known: Boundaries, cause: Sizes) -> Iterator[Condition]:
    moved = [dim for dim in known.free if cause[dim] != known.base[dim]]
    if len(moved) == 1:
        yield from _conditions_on_one(known, moved[0], cause)
    else:
        yield from _suggestions_about(known, moved)
    if len(moved) == 2:
        yield from _conditions_on_two(known, moved[0], moved[1], cause)


def _suggestions_about(known: Boundaries, dims: Iterable[str]) -> Iterator[Condition]:
    return (condition for condition in known.suggestions if set(condition.names) <= set(dims))


def _conditions_on_one(known: Boundaries, dim: str, cause: Sizes) -> Iterator[Condition]:
    size, failing = known.base[dim], cause[dim]
    if step := _step_between(known, dim, failing):
        yield parse_condition(f"{dim} % {step} == {size % step}")
        return
    last, beyond = _edge_towards(known, dim, failing, known.base)
    if other := _depends_on(known, {**known.base, dim: beyond}, (dim,)):
        yield from _suggestions_about(known, (dim, other))
        yield from _joint_bounds(known, dim, other, _sizes_around(known, other), cause)
    else:
        yield parse_condition(f"{dim} {_relation(failing, size)} {last}")


def _conditions_on_two(known: Boundaries, d: str, e: str, cause: Sizes) -> Iterator[Condition]:
    near, far, grid = known.base[e], cause[e], known.grid(e)
    sizes = (far, grid.nearest((near + far) // 2), grid.nearest((near + 3 * far) // 4))
    return _joint_bounds(known, d, e, dict.fromkeys(sizes), cause)


# ---- a limit of one dim


def _step_between(known: Boundaries, dim: str, failing: int) -> int | None:
    """A multiple: sizes on both sides of the failing one run."""
    size, grid = known.base[dim], known.grid(dim)
    stride = grid.step if failing > size else -grid.step
    beyond = [s for s in (failing + stride * k for k in range(1, 9)) if s in grid]
    running = [s for s in beyond if known.runs({**known.base, dim: s})]
    for step in range(2 * grid.step, budgets.LARGEST_MULTIPLE + 1, grid.step) if running else ():
        if (failing - size) % step and all((s - size) % step == 0 for s in running):
            nearby = [s for s in (size + step, size + 2 * step) if s in grid]
            if all(known.runs({**known.base, dim: s}) for s in nearby):
                return step
    return None


def _edge_towards(known: Boundaries, dim: str, failing: int, base: Mapping[str, int]) -> tuple[int, int]:
    """The last size that runs and the next, which does not, on the way from the base to one that fails."""
    way = _sizes_between(known.grid(dim), base[dim], failing)
    low, high = 0, len(way) - 1
    middle = high - 1  # what lies beyond a table fails at once
    while high - low > 1:
        if known.runs({**base, dim: way[middle]}):
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    return way[low], way[high]


def _sizes_between(grid: SizeRange, start: int, end: int) -> Sequence[int]:
    """The sizes of a range from one to another."""
    sign = 1 if end > start else -1
    if grid.values is not None:
        return sorted((v for v in grid.values if min(start, end) <= v <= max(start, end)), reverse=sign < 0)
    return range(start, end + sign, sign * grid.step)


def _relation(failing: int, running: int) -> str:
    return "<=" if failing > running else ">="


# ---- a limit of two dims: where it lies at a few sizes of the other tells a sum from a difference from a product


@dataclass(frozen=True)
class _Edge:
    """At one size of another dim, the last size that runs and the next, which does not."""

    last: int
    beyond: int
    other: int


def _sizes_around(known: Boundaries, dim: str) -> list[int]:
    """The base and sizes on both sides of it, the telling ones first."""
    grid, size = known.grid(dim), known.base[dim]
    wanted = (size, size // 2, 2 * size, size - grid.step, size + grid.step)
    return list(dict.fromkeys(map(grid.nearest, wanted)))


def _depends_on(known: Boundaries, failing: Sizes, dims: Sequence[str]) -> str | None:
    """Another dim at whose smaller or larger size these run as well: the bound is a joint one."""
    for other in known.free:
        if other not in dims and any(known.runs({**failing, other: size}) for size in _sizes_around(known, other)[1:]):
            return other
    return None


_FORMS: Mapping[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def _joint_bounds(known: Boundaries, d: str, e: str, sizes: Iterable[int], cause: Sizes) -> Iterator[Condition]:
    """Where `d` begins to fail at some sizes of `e`, as a condition on both."""
    edges = _edges_at(known, d, e, sizes, cause[d])
    if len(edges) < 2 or _depends_on(known, {**known.base, d: edges[0].beyond, e: edges[0].other}, (d, e)):
        return
    relation = _relation(cause[d], known.base[d])
    first, second = _in_order((d, e), known.base)
    for sign, value in _FORMS.items():
        bound = _dividing_value(edges, value, relation)
        if bound == 0 and sign == "-":
            yield parse_condition(f"{d} {relation} {e}")
        elif bound is not None:
            left = f"{d} - {e}" if sign == "-" else f"{first} {sign} {second}"
            yield parse_condition(f"{left} {relation} {bound}")


def _dividing_value(edges: Sequence[_Edge], value: Callable[[int, int], int], relation: str) -> int | None:
    """The value that parts what runs from what does not on all edges."""
    inside = [value(edge.last, edge.other) for edge in edges]
    outside = [value(edge.beyond, edge.other) for edge in edges]
    if relation == "<=":
        return max(inside) if max(inside) < min(outside) else None
    return min(inside) if min(inside) > max(outside) else None


def _edges_at(known: Boundaries, d: str, e: str, sizes: Iterable[int], failing: int) -> list[_Edge]:
    far = known.grid(d).nearest(failing + 2 * (failing - known.base[d]))
    edges: list[_Edge] = []
    for size in sizes:
        base = {**known.base, e: size}
        if len(edges) < budgets.ENOUGH_EDGES_OF_A_LIMIT and known.runs(base) and not known.runs({**base, d: far}):
            edges.append(_Edge(*_edge_towards(known, d, far, base), size))
    return edges


# ---- ties, which are only proposed here: `b2 == b`, `total == past + seq`; the model decides which of them hold


def tie_candidates(dim: str, sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Sets of equalities that hold at these sizes and speak of one dim, the simplest first; the left side follows."""
    others = [other for other in sizes if other != dim]
    same = [other for other in others if sizes[other] == sizes[dim]]
    pairs = [sorted((dim, other), key=lambda d: -sizes[d]) for other in others if other not in same]
    for first, second in (_in_order((dim, other), sizes) for other in same):
        yield (f"{second} == {first}",)
    for large, small in pairs:
        yield from ((text,) for text in _sums_and_products(large, small, sizes))
    for large, small in pairs:
        if sizes[small] and sizes[large] % sizes[small] == 0:
            yield (f"{large} == {sizes[large] // sizes[small]} * {small}",)
        yield (f"{large} == {small} + {sizes[large] - sizes[small]}",)
    if len(same) > 1:
        first, *rest = _in_order((dim, *same), sizes)
        yield tuple(f"{name} == {first}" for name in rest)


def _sums_and_products(large: str, small: str, sizes: Mapping[str, int]) -> Iterator[str]:
    for third in sizes:
        if third == large or sizes[third] > sizes[large]:
            continue
        if third != small and sizes[small] + sizes[third] == sizes[large]:
            yield f"{large} == {' + '.join(_in_order((small, third), sizes))}"
        if sizes[small] * sizes[third] == sizes[large] and sizes[small] > 1:
            yield f"{large} == {' * '.join(_in_order((small, third), sizes))}"


def _in_order(names: Iterable[str], sizes: Mapping[str, int]) -> list[str]:
    """As the dims were declared."""
    return sorted(names, key=list(sizes).index)
