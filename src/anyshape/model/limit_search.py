"""Why does a model fail at a size? The condition that it violates, found by asking the model.

What is proposed (a bound, a multiple, a tie, a bound on two dims) is asked beyond before it is believed: close to its
edge, far from it, with other dims moved, at size 1, which broadcasts, and by lot. Where a size outside runs, the
condition gets an alternative (`b == a or a == 1`, `n <= 9 or n >= 21`) that is asked in turn, or it is dropped.
"""

from __future__ import annotations

import itertools
import math
import operator
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, SizeRange, Sizes, any_of, parse_condition, parse_expression

if TYPE_CHECKING:
    from anyshape.model.limits import Boundaries


def find_limit(known: Boundaries, cause: Sizes) -> Condition | None:
    """The condition that a failing size violates, as far as one is true wherever the model was asked."""
    asked = len(known.ran) + len(known.failed)
    tried: list[Condition] = []
    for condition in _conditions_to_try(known, cause):
        if condition not in tried and not condition.holds(cause):
            tried.append(condition)
            if (found := true_condition(known, condition, cause, most_others=0)) is not None:
                return found
    for most_others in range(1, budgets.MOST_ALTERNATIVES_OF_A_LIMIT + 1):
        for condition in tried:
            if len(known.ran) + len(known.failed) - asked > budgets.MOST_RUNS_FOR_A_LIMIT:
                return None
            if (found := true_condition(known, condition, cause, most_others=most_others)) is not None:
                return found
    return None


# ---- is it true?


def true_condition(known: Boundaries, condition: Condition, cause: Sizes, *, most_others: int) -> Condition | None:
    """The condition, with alternatives where sizes outside it run; None where it cannot be made true by so many."""
    parts = list(condition.parts)
    for _ in range(2 * most_others + 1):
        counter = _size_that_runs_outside(known, any_of(parts), cause)
        if counter is None:
            return _in_readable_order(known, parts) if len(parts) == 1 or _frees_each(known, parts) else None
        other = _alternative(known, parts, counter, cause) if most_others else None
        if other is None:
            return None
        parts = _without_needless(known, [*parts, other])
        if len(parts) > most_others + 1:
            return None
    return None


def _size_that_runs_outside(known: Boundaries, condition: Condition, cause: Sizes) -> Sizes | None:
    """Among the sizes that ran; else among the telling ones outside, which are run now."""
    found = next((sizes for sizes in (known.base, *known.ran) if not condition.holds(sizes)), None)
    if found is not None:
        return found
    most = known.runs_worth(cause, condition) * (2 if condition.others and len(condition.names) > 1 else 1)
    asked: set[tuple[int, ...]] = set()
    for telling in _telling_sizes(known, condition, cause, most):
        sizes = None if condition.holds(telling) else known.admit(telling)
        if sizes is None or condition.holds(sizes) or not known.is_affordable(sizes, cause):
            continue
        if known.runs(sizes):
            return sizes
        asked.add(tuple(sizes.values()))
        if len(asked) == most:
            break
    return None


def _telling_sizes(known: Boundaries, condition: Condition, cause: Sizes, most: int) -> Iterator[Sizes]:
    """One dim around the edge and far beyond it, and all dims at once by lot, in turn."""
    spots = {dim: _spots(known, condition, cause, dim) for dim in known.base}
    own = itertools.zip_longest(*([(dim, size) for size in spots[dim]] for dim in condition.names))
    singles = [one for row in own for one in row if one is not None]
    lowest = {dim: known.grid(dim).lo for dim in known.base}
    alone = ({**sizes, dim: size} for dim, size in singles for sizes in (cause, known.base, lowest))
    chance = random.Random(str(condition))  # noqa: S311  sizes, not secrets
    by_lot = (_sizes_by_lot(known, spots, cause, chance) for _ in range(8 * most))
    for row in itertools.zip_longest(alone, by_lot):
        yield from (sizes for sizes in row if sizes is not None)


def _spots(known: Boundaries, condition: Condition, cause: Sizes, dim: str) -> list[int]:
    """Sizes of one dim, the most telling first: one and two, beside the edge, far beyond, the ends, all around."""
    grid, failing, size = known.grid(dim), cause[dim], known.base[dim]
    numbers = [int(text) for text in re.findall(r"\b\d{1,6}\b", str(condition))]
    beside = [near + sign * grid.step for near in (failing, size, *numbers) for sign in (1, -1)]
    far = [factor * failing + 1 for factor in (2, 4, 16, 128)]
    ends = [grid.lo, *([] if grid.hi is None else [grid.hi])]
    wanted = [1, *beside[:2], 2, far[1], *beside[2:], *numbers, *ends, far[0], *far[2:], 2 * failing, 3]
    if condition.names == (dim,):
        wanted += [failing + sign * k * grid.step for k in range(2, 24) for sign in (1, -1)]
    return list(dict.fromkeys(grid.nearest(one) for one in wanted if one >= 0))


def _sizes_by_lot(known: Boundaries, spots: Mapping[str, Sequence[int]], cause: Sizes, chance: random.Random) -> Sizes:
    """Each dim as in the failing size, at a telling one, small, anywhere, or close to another or its multiple."""
    drawn: dict[str, int] = {}
    for dim in chance.sample(list(known.base), len(known.base)):
        other = chance.choice(list(drawn.values()) or [2])
        related = other * chance.choice((1, 1, 2, 3)) + chance.choice((0, 0, 0, 1, -1, 2))
        anywhere = chance.randint(1, 2 * max(cause[dim], known.base[dim]) + 8)
        kinds = (cause[dim], chance.choice(spots[dim][:10]), related, chance.randint(1, 6), anywhere)
        drawn[dim] = known.grid(dim).nearest(chance.choice(kinds))
    return {dim: drawn[dim] for dim in known.base}


def _frees_each(known: Boundaries, parts: Sequence[Condition]) -> bool:
    """Whether to satisfy any one part is enough, at most of the sizes that fail: else they are steps of a slope."""
    whole = any_of(parts)
    failed = [sizes for sizes in known.failed if not whole.holds(sizes)]
    # other dims at the base: what fails for their sake says nothing here
    outside = [{**known.base, **{dim: sizes[dim] for dim in whole.names}} for sizes in failed]
    for part in parts:
        if part.left.is_name:
            freed = ({**sizes, part.left.text: part.right.value(sizes)} for sizes in outside)
            unique = {tuple(sizes.values()): sizes for sizes in map(known.follow, freed)}
            moved = list(unique.values())[: budgets.MOST_RUNS_INSIDE_A_LIMIT]
            if 2 * sum(map(known.runs, moved)) < len(moved):
                return False
    return True


def _without_needless(known: Boundaries, parts: list[Condition]) -> list[Condition]:
    """Without those whose every size that ran another part has, too."""
    for part in parts:
        rest = [other for other in parts if other is not part]
        if rest and all(any_of(rest).holds(sizes) for sizes in (known.base, *known.ran)):
            return _without_needless(known, rest)
    return parts


def _in_readable_order(known: Boundaries, parts: Sequence[Condition]) -> Condition:
    """A tie first, since a dim follows by it; then in the order of the dims, multiples and lower sizes first."""
    dims = list(known.base)

    def rank(part: Condition) -> tuple[bool, int, bool, str]:
        return not part.right.names, dims.index(part.names[0]), part.left.is_name, part.relation

    return any_of(sorted(parts, key=rank))


def _alternative(known: Boundaries, parts: Sequence[Condition], counter: Sizes, cause: Sizes) -> Condition | None:
    """What holds where the model runs outside and not at the failing size; as few failing sizes as can be have it."""
    whole = any_of(parts)
    outside = [sizes for sizes in known.failed if not whole.holds(sizes)]
    fitting = [one for one in _relations_at(known, counter, cause, whole.names) if not one.holds(cause)]

    def fit(one: Condition) -> tuple[int, bool, int]:
        # few failing sizes; then size 1, which broadcasts; then what makes other parts needless
        return sum(map(one.holds, outside)), not str(one).endswith(" == 1"), -sum(map(one.holds, known.ran))

    return min(fitting, key=fit, default=None)


def _relations_at(known: Boundaries, counter: Sizes, cause: Sizes, names: Sequence[str]) -> Iterator[Condition]:
    """Simple relations that hold at a size, of the dims in question and of those in which it differs."""
    dims = [dim for dim in counter if dim in names or counter[dim] != cause[dim]]
    yield from (parse_condition(f"{dim} == 1") for dim in dims if counter[dim] == 1)
    for first, second in itertools.combinations(dims, 2):
        if counter[first] == counter[second]:
            yield parse_condition(f"{second} == {first}")
    for dim in dims:
        ahead = _sizes_between(known.grid(dim), counter[dim], cause[dim])
        # by doubling steps: on the whole way, others may run for other reasons
        far = (ahead[min(2**power, len(ahead) - 1)] for power in range(len(ahead).bit_length() + 1))
        failing = (size for size in far if not known.runs({**counter, dim: size}))
        if counter[dim] != cause[dim] and (end := next(failing, None)) is not None:
            last, beyond = _edge_towards(known, dim, end, counter)
            yield parse_condition(f"{dim} {_relation(beyond, last)} {last}")
    for large, small in itertools.permutations(dims, 2):
        if 1 < counter[small] < counter[large] and counter[large] % counter[small] == 0:
            yield parse_condition(f"{large} % {small} == 0")


# ---- what could it be?


def _conditions_to_try(known: Boundaries, cause: Sizes) -> Iterator[Condition]:
    """What may be behind a failure, the simplest first; the model is asked while they are made."""
    moved = [dim for dim in known.loose(cause) if cause[dim] != known.base[dim]]
    if len(moved) == 1:
        yield from _conditions_on_one(known, moved[0], cause)
    else:
        yield from _suggestions_about(known, moved)
    yield from _ties_at(known, moved, cause)
    pairs = [(d, e) for d, e in itertools.combinations(known.base, 2) if {d, e} & set(moved)]
    yield from (condition for d, e in pairs for condition in multiples_of_two(known, d, e))
    if len(moved) == 2:
        yield from _conditions_on_two(known, moved[0], moved[1], cause)
    yield from _suggestions_about(known, known.base)
    for dim in moved if len(moved) > 1 else ():
        last, beyond = _edge_towards(known, dim, cause[dim], {**cause, dim: known.base[dim]})
        yield parse_condition(f"{dim} {_relation(beyond, last)} {last}")


def _suggestions_about(known: Boundaries, dims: Iterable[str]) -> Iterator[Condition]:
    """Guards of a trace; torch notes `!=` all the time, to no effect."""
    told = (condition for condition in known.suggestions if condition.relation != "!=")
    return (condition for condition in told if set(condition.names) <= set(dims))


def _conditions_on_one(known: Boundaries, dim: str, cause: Sizes) -> Iterator[Condition]:
    yield from multiples(known, dim)
    last, beyond = _edge_towards(known, dim, cause[dim], known.base)
    other = _depends_on(known, {**known.base, dim: beyond}, (dim,))
    if other is not None:
        yield from _suggestions_about(known, (dim, other))
        yield from multiples_of_two(known, dim, other)
        yield from _joint_bounds(known, dim, other, _sizes_around(known, other), cause)
    yield parse_condition(f"{dim} {_relation(beyond, last)} {last}")


def _conditions_on_two(known: Boundaries, d: str, e: str, cause: Sizes) -> Iterator[Condition]:
    near, far, grid = known.base[e], cause[e], known.grid(e)
    sizes = (far, grid.nearest((near + far) // 2), grid.nearest((near + 3 * far) // 4))
    return _joint_bounds(known, d, e, dict.fromkeys(sizes), cause)


# ---- multiples, of one dim and of two: the largest step on which all lies that ran


def multiples(known: Boundaries, form: str) -> Iterator[Condition]:
    """`n % 8 == 0`, if it runs a step further on; as it is asked on, smaller steps where sizes ran in the meantime."""
    expression, tried = parse_expression(form), 0
    text = f"({form})" if "+" in form or "-" in form else form
    while True:
        at_base = expression.value(known.base)
        step = math.gcd(*(expression.value(sizes) - at_base for sizes in known.ran))
        if step in (0, 1, tried) or step > budgets.LARGEST_MULTIPLE:
            return
        tried = step
        if all(_moves_by(known, dim, step) for dim in expression.names):
            yield parse_condition(f"{text} % {step} == {at_base % step}")


def _moves_by(known: Boundaries, dim: str, step: int) -> bool:
    """Whether a dim runs a step further on; size 1 may run for being broadcast, and a dim that is tied stays."""
    ahead = ({**known.base, dim: known.base[dim] + sign * step} for sign in (1, -1))
    return any(s[dim] > 1 and known.follow(s)[dim] == s[dim] and known.runs(s) for s in ahead)


def multiples_of_two(known: Boundaries, d: str, e: str) -> Iterator[Condition]:
    for large, small in ((d, e), (e, d)):
        step = known.base[small]
        if 1 < step < known.base[large] and known.base[large] % step == 0 and _moves_by(known, large, step):
            yield parse_condition(f"{large} % {small} == 0")
    for sign in _FORMS:
        yield from multiples(known, f"{d} {sign} {e}")


# ---- a limit of one dim


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
    for other in known.loose(known.base):
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
        if bound is not None and sign == "*":
            bound = _furthest_product(known, d, e, bound, edges)
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


def _furthest_product(known: Boundaries, d: str, e: str, bound: int, edges: Sequence[_Edge]) -> int:
    """Products lie apart: those between what ran and what did not are asked for, from outside."""
    outside = min((edge.beyond * edge.other for edge in edges), key=lambda value: abs(value - bound))
    for value in range(*((outside - 1, bound, -1) if outside > bound else (outside + 1, bound))):
        factors = [size for size in range(2, math.isqrt(value) + 1) if value % size == 0][-1:]
        pairs = [(size, value // size) for size in factors] + [(1, value)]
        if any(known.runs({**known.base, d: x, e: y}) for a, b in pairs for x, y in ((a, b), (b, a))):
            return value
    return bound


def _edges_at(known: Boundaries, d: str, e: str, sizes: Iterable[int], failing: int) -> list[_Edge]:
    far = known.grid(d).nearest(failing + 2 * (failing - known.base[d]))
    edges: list[_Edge] = []
    for size in sizes:
        base = {**known.base, e: size}
        if len(edges) < budgets.ENOUGH_EDGES_OF_A_LIMIT and known.runs(base) and not known.runs({**base, d: far}):
            edges.append(_Edge(*_edge_towards(known, d, far, base), size))
    return edges


# ---- ties, which are only proposed here: `b2 == b`, `total == past + seq`; the model decides which of them hold


def _ties_at(known: Boundaries, moved: Iterable[str], cause: Sizes) -> Iterator[Condition]:
    """Ties of the base that a failing size breaks, and that would make it run."""
    found = (texts[0] for dim in known.base for texts in tie_candidates(dim, known.base) if len(texts) == 1)
    for tie in map(parse_condition, dict.fromkeys(found)):
        is_broken = set(tie.names) & set(moved) and not tie.holds(cause)
        if is_broken and known.runs({**cause, tie.left.text: tie.right.value(cause)}):
            yield tie


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
    for large, small in pairs:
        yield from ((text,) for text in _parts_of(large, small, sizes))
    if len(same) > 1:
        first, *rest = _in_order((dim, *same), sizes)
        yield tuple(f"{name} == {first}" for name in rest)


def _parts_of(large: str, small: str, sizes: Mapping[str, int]) -> Iterator[str]:
    """`bins == n // 2 + 1`: what steps and transforms leave of a dim."""
    ratio = sizes[large] // max(sizes[small], 1)
    for step, form in itertools.product((ratio, ratio + 1), ("{} // {} + 1", "{} // {}", "({} - 1) // {} + 1")):
        text = f"{small} == {form.format(large, step)}"
        if step > 1 and parse_condition(text).holds(sizes):
            yield text


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
