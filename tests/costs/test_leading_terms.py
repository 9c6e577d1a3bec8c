"""How formulas grow."""

from __future__ import annotations

import sympy

from anyshape.costs.leading_terms import growth_of
from anyshape.costs.size_numbers import Choice

B, S, P = sympy.symbols("batch seq past", integer=True, positive=True)
DIMS = [B, S, P]


def test_the_largest_terms_are_left() -> None:
    assert growth_of([4 * B * S**2 + 7 * B * S + 100], DIMS) == "O(batch*seq^2)"
    assert growth_of([B * S**2 + B * S * P + P], DIMS) == "O(batch*seq^2 + batch*seq*past)"
    assert growth_of([sympy.Integer(12)], DIMS) == "O(1)"
    assert growth_of([sympy.Integer(12)], []) == "O(1)"


def test_what_rounds_counts_as_what_it_rounds_and_bounds_as_their_numbers() -> None:
    assert growth_of([sympy.floor((S - 1) / 2) * B], DIMS) == "O(batch*seq)"
    assert growth_of([sympy.Min(S, 512) * B + sympy.Mod(P, 8)], DIMS) == "O(batch)"
    assert growth_of([Choice(S > 4, B, S)], DIMS) == "O(batch + seq)"
    assert growth_of([sympy.Max(B * S, P)], DIMS) == "O(batch*seq + past)"


def test_several_formulas_are_one_growth() -> None:
    assert growth_of([B, B * S, S], DIMS) == "O(batch*seq)"
