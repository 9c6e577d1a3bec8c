"""Equalities that may tie dims: `b2 == b`, `total == past + seq`, `patches == h * w`. The model decides which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def tie_candidates(dim: str, sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Sets of equalities that hold at these sizes and speak of one dim, the simplest first; the left side follows."""
    others = [other for other in sizes if other != dim]
    same = [other for other in others if sizes[other] == sizes[dim]]
    pairs = [_ordered(dim, other, sizes) for other in others if other not in same]
    yield from ((_equal(dim, other, sizes),) for other in same)
    for large, small in pairs:
        yield from ((text,) for text in _of_three(large, small, sizes))
    for large, small in pairs:
        if sizes[small] and sizes[large] % sizes[small] == 0:
            yield (f"{large} == {sizes[large] // sizes[small]} * {small}",)
        yield (f"{large} == {small} + {sizes[large] - sizes[small]}",)
    if len(same) > 1:
        first, *rest = [name for name in sizes if name == dim or name in same]
        yield tuple(f"{name} == {first}" for name in rest)


def _ordered(d: str, e: str, sizes: Mapping[str, int]) -> tuple[str, str]:
    return (d, e) if sizes[d] > sizes[e] else (e, d)


def _equal(d: str, e: str, sizes: Mapping[str, int]) -> str:
    first, second = (name for name in sizes if name in (d, e))
    return f"{second} == {first}"


def _of_three(large: str, small: str, sizes: Mapping[str, int]) -> Iterator[str]:
    for third in sizes:
        if third == large or sizes[third] > sizes[large]:
            continue
        if third != small and sizes[small] + sizes[third] == sizes[large]:
            yield f"{large} == {_joined('+', small, third, sizes)}"
        if sizes[small] * sizes[third] == sizes[large] and sizes[small] > 1:
            yield f"{large} == {_joined('*', small, third, sizes)}"


def _joined(sign: str, d: str, e: str, sizes: Mapping[str, int]) -> str:
    order = list(sizes)
    return f" {sign} ".join(sorted((d, e), key=order.index))
