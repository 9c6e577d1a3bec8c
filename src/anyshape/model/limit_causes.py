"""Why does PyTorch fail at a size? The condition that it violates: a multiple, a bound, a relation or a tie of dims.

Bisection finds where it begins to fail. A bound that moves with another dim is a joint one: where it lies at a few
sizes of the other tells a sum from a difference from a product. Ties are only proposed here: `b2 == b`,
`total == past + seq`, `patches == h * w`; the model decides which of them hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, SizeRange, Sizes, parse_condition


class Known(Protocol):
    """What is known of a model, and a way to ask it."""

    @property
    def base(self) -> Sizes: ...
    @property
    def suggestions(self) -> tuple[Condition, ...]: ...
    @property
    def free(self) -> list[str]: ...
    def grid(self, dim: str) -> SizeRange: ...
    def runs(self, sizes: Mapping[str, int]) -> bool: ...
    def explains(self, condition: Condition, cause: Sizes) -> bool: ...


def find_limit(known: Known, cause: Sizes) -> Condition | None:
    """The condition that a failing size violates, as far as one explains all that is known."""
    return next((condition for condition in _conditions_to_try(known, cause) if known.explains(condition, cause)), None)


def _conditions_to_try(known: Known, cause: Sizes) -> Iterator[Condition]:
    moved = [dim for dim in known.free if cause[dim] != known.base[dim]]
    if len(moved) == 1:
        yield from _conditions_on_one(known, moved[0], cause)
    else:
        yield from _suggestions_about(known, moved)
    if len(moved) == 2:
        yield from _conditions_on_two(known, moved[0], moved[1], cause)


def _suggestions_about(known: Known, dims: Iterable[str]) -> Iterator[Condition]:
    return (condition for condition in known.suggestions if set(condition.names) <= set(dims))


def _conditions_on_one(known: Known, dim: str, cause: Sizes) -> Iterator[Condition]:
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


def _conditions_on_two(known: Known, d: str, e: str, cause: Sizes) -> Iterator[Condition]:
    near, far, grid = known.base[e], cause[e], known.grid(e)
    sizes = (far, grid.nearest((near + far) // 2), grid.nearest((near + 3 * far) // 4))
    return _joint_bounds(known, d, e, dict.fromkeys(sizes), cause)


# ---- one dim


def _step_between(known: Known, dim: str, failing: int) -> int | None:
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


def _edge_towards(known: Known, dim: str, failing: int, base: Mapping[str, int]) -> tuple[int, int]:
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


# ---- two dims


@dataclass(frozen=True)
class _Edge:
    """At one size of another dim, the last size that runs and the next, which does not."""

    last: int
    beyond: int
    other: int


def _sizes_around(known: Known, dim: str) -> list[int]:
    """The base and sizes on both sides of it, the telling ones first."""
    grid, size = known.grid(dim), known.base[dim]
    wanted = (size, size // 2, 2 * size, size - grid.step, size + grid.step)
    return list(dict.fromkeys(map(grid.nearest, wanted)))


def _depends_on(known: Known, failing: Sizes, dims: Sequence[str]) -> str | None:
    """Another dim at whose smaller or larger size these run as well: the bound is a joint one."""
    for other in known.free:
        if other not in dims and any(known.runs({**failing, other: size}) for size in _sizes_around(known, other)[1:]):
            return other
    return None


_FORMS: tuple[tuple[str, Callable[[int, int], int]], ...] = (
    ("+", lambda a, b: a + b),
    ("-", lambda a, b: a - b),
    ("*", lambda a, b: a * b),
)


def _joint_bounds(known: Known, d: str, e: str, sizes: Iterable[int], cause: Sizes) -> Iterator[Condition]:
    """Where `d` begins to fail at some sizes of `e`, as a condition on both."""
    edges = _edges_at(known, d, e, sizes, cause[d])
    if len(edges) < 2 or _depends_on(known, {**known.base, d: edges[0].beyond, e: edges[0].other}, (d, e)):
        return
    relation = _relation(cause[d], known.base[d])
    first, second = (dim for dim in known.base if dim in (d, e))
    for sign, value in _FORMS:
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


def _edges_at(known: Known, d: str, e: str, sizes: Iterable[int], failing: int) -> list[_Edge]:
    far = known.grid(d).nearest(failing + 2 * (failing - known.base[d]))
    edges: list[_Edge] = []
    for size in sizes:
        base = {**known.base, e: size}
        if len(edges) < budgets.ENOUGH_EDGES_OF_A_LIMIT and known.runs(base) and not known.runs({**base, d: far}):
            edges.append(_Edge(*_edge_towards(known, d, far, base), size))
    return edges


# ---- ties


def tie_candidates(dim: str, sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Sets of equalities that hold at these sizes and speak of one dim, the simplest first; the left side follows."""
    others = [other for other in sizes if other != dim]
    same = [other for other in others if sizes[other] == sizes[dim]]
    pairs = [_larger_first(dim, other, sizes) for other in others if other not in same]
    yield from ((_equality(dim, other, sizes),) for other in same)
    for large, small in pairs:
        yield from ((text,) for text in _sums_and_products(large, small, sizes))
    for large, small in pairs:
        if sizes[small] and sizes[large] % sizes[small] == 0:
            yield (f"{large} == {sizes[large] // sizes[small]} * {small}",)
        yield (f"{large} == {small} + {sizes[large] - sizes[small]}",)
    if len(same) > 1:
        first, *rest = [name for name in sizes if name == dim or name in same]
        yield tuple(f"{name} == {first}" for name in rest)


def _larger_first(d: str, e: str, sizes: Mapping[str, int]) -> tuple[str, str]:
    return (d, e) if sizes[d] > sizes[e] else (e, d)


def _equality(d: str, e: str, sizes: Mapping[str, int]) -> str:
    first, second = (name for name in sizes if name in (d, e))
    return f"{second} == {first}"


def _sums_and_products(large: str, small: str, sizes: Mapping[str, int]) -> Iterator[str]:
    for third in sizes:
        if third == large or sizes[third] > sizes[large]:
            continue
        if third != small and sizes[small] + sizes[third] == sizes[large]:
            yield f"{large} == {_in_order_of_dims('+', small, third, sizes)}"
        if sizes[small] * sizes[third] == sizes[large] and sizes[small] > 1:
            yield f"{large} == {_in_order_of_dims('*', small, third, sizes)}"


def _in_order_of_dims(sign: str, d: str, e: str, sizes: Mapping[str, int]) -> str:
    order = list(sizes)
    return f" {sign} ".join(sorted((d, e), key=order.index))
