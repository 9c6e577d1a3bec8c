"""Formulas of sizes: what they give, which dims they have, and what is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anyshape.errors import DeclarationError
from anyshape.sizes.formulas import parse_formula

SIZES = {"batch": 4, "seq": 17}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("batch", 4),
        ("1/batch", 0.25),
        ("-(seq // 2)", -8),
        ("seq % 3 + 2**batch", 18),
        ("sqrt(seq) / log(batch)", math.sqrt(17) / math.log(4)),
        ("log2(batch)", 2),
        ("min(batch, seq) * max(batch, 2.5)", 16),
        ("floor(seq / 2) + ceil(seq / 2) + round(1.2) + abs(-3)", 21),
        ("exp(0) + sin(0) + cos(pi)", 0),
    ],
)
def test_a_formula_gives_what_python_would(text, value):
    assert math.isclose(float(parse_formula(text).values(SIZES)), value, abs_tol=1e-12)


def test_a_ramp_is_as_long_as_it_says_or_as_it_is_told():
    formula = parse_formula("(range(batch) + 0.5) / batch")
    assert formula.is_ramp
    assert np.array_equal(formula.values(SIZES), [0.125, 0.375, 0.625, 0.875])
    assert np.array_equal(formula.values(SIZES, 2), [0.125, 0.375])


def test_several_numbers_and_the_dims_in_them():
    formula = parse_formula("0, seq, min(batch, 2)")
    assert formula.names == ("seq", "batch")
    assert not formula.is_ramp
    assert np.array_equal(formula.values(SIZES), [0, 17, 2])


@pytest.mark.parametrize(
    "text",
    ["", "batch +", "batch.real", "__import__('os')", "sqrt(1, 2)", "True", "x[0]", "a if b else c", "'a'", "a" * 9999],
)
def test_what_is_no_formula_is_one_sentence(text):
    with pytest.raises(DeclarationError, match="is no number of dims: use dims, numbers"):
        parse_formula(text)


@pytest.mark.parametrize(
    ("text", "is_whole"), [("seq - 1", True), ("seq//2", True), ("1/seq", False), ("sqrt(seq)", False)]
)
def test_some_formulas_are_whole_numbers_by_form(text, is_whole):
    assert parse_formula(text).is_whole is is_whole
