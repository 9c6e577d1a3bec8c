"""How a formula grows: the terms that are left when sizes become large, `O(batch*seq^2)`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sympy

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
    parts = [_smooth(part) for part in size.args] if not isinstance(size, sympy.Piecewise) else []
    if isinstance(size, (sympy.floor, sympy.ceiling, sympy.Abs)):
        return _positive(parts[0])
    if isinstance(size, sympy.Mod):
        return _positive(parts[1])
    if isinstance(size, sympy.Max):
        return sum(map(_positive, parts), sympy.Integer(0))
    if isinstance(size, sympy.Min):
        # each of them bounds it: a number does so best
        return _positive(min(parts, key=lambda part: (len(part.free_symbols), str(part))))
    if isinstance(size, sympy.Piecewise):
        return sum((_positive(_smooth(value)) for value, _ in size.args), sympy.Integer(0))
    return size.func(*parts)


def _positive(size: Size) -> Size:
    """With every term counted: `8*a - b` grows with both."""
    return sum((abs(factor) * term for term, factor in sympy.expand(size).as_coefficients_dict().items()), sympy.Integer(0))
