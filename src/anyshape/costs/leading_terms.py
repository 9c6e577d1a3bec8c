"""How a formula grows: the terms that are left when sizes become large, `O(batch*seq^2)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import sympy

from anyshape.costs.size_numbers import Choice
from anyshape.sizes.expressions import Size

Powers = tuple[int, ...]
"""Of each dim."""


def growth_of(sizes: Iterable[Size], dims: Sequence[Size]) -> str:
    """Of the largest of these formulas."""
    powers = {row for size in sizes for row in _powers_of(_smooth(size), dims)}
    leading = [row for row in powers if not any(other != row and _exceeds(other, row) for other in powers)]
    texts = [_product_text(row, dims) for row in sorted(leading, reverse=True)]
    return f"O({' + '.join(texts) or '1'})"


def _exceeds(one: Powers, other: Powers) -> bool:
    return all(a >= b for a, b in zip(one, other, strict=True))


def _product_text(row: Powers, dims: Sequence[Size]) -> str:
    factors = [dim.name if power == 1 else f"{dim.name}^{power}" for dim, power in zip(dims, row, strict=True) if power]
    return "*".join(factors) or "1"


def _powers_of(size: Size, dims: Sequence[Size]) -> set[Powers]:
    """Of each term; a quotient of sizes counts as what is divided alone, so that nothing is told too small."""
    if not dims:
        return {()}
    numerator, _ = sympy.together(size).as_numer_denom() if size.free_symbols else (size, 1)
    return set(sympy.Poly(numerator, *dims).monoms())


def _smooth(size: Size) -> Size:
    """Without what rounds, bounds and chooses: of the same growth, or a larger one."""
    if not size.args:
        return size
    if isinstance(size, Choice):
        return _sum_of(map(_smooth, size.args[1:]))
    parts = [_smooth(part) for part in size.args]
    return _SMOOTHED[type(size)](parts) if type(size) in _SMOOTHED else size.func(*parts)


def _sum_of(parts: Iterable[Size]) -> Size:
    return sympy.Add(*map(_positive, parts))


_SMOOTHED: Mapping[type, Callable[[list[Size]], Size]] = {
    **dict.fromkeys((sympy.floor, sympy.ceiling, sympy.Abs, sympy.Max), _sum_of),
    sympy.Mod: lambda parts: _positive(parts[1]),
    # each of them bounds it: a number does so best
    sympy.Min: lambda parts: _positive(min(parts, key=lambda part: (len(part.free_symbols), str(part)))),
}


def _positive(size: Size) -> Size:
    """With every term counted: `8*a - b` grows with both."""
    return sum(
        (abs(factor) * term for term, factor in sympy.expand(size).as_coefficients_dict().items()), sympy.Integer(0)
    )
