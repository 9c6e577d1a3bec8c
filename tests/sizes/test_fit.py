"""Whole numbers seen at several sizes become the expression that somebody wrote."""

from __future__ import annotations

import pytest

from anyshape.sizes.expressions import dim_symbol, evaluated
from anyshape.sizes.fit import Points, whole_number

BATCH, SEQ = dim_symbol("batch"), dim_symbol("seq")
SIZES = ((3, 11), (4, 10), (7, 17), (8, 5), (13, 6))
POINTS = Points(tuple({BATCH: batch, SEQ: seq} for batch, seq in SIZES), {})
UNSEEN = ((1, 1), (2, 9), (5, 2), (30, 41), (6, 64))


@pytest.mark.parametrize(
    "law",
    [
        lambda _b, _s: 7,
        lambda b, _s: b,
        lambda b, s: b * s,
        lambda _b, s: 3 * s,
        lambda _b, s: 2 * s + 1,
        lambda _b, s: s - 1,
        lambda b, s: b * (s + 1),
        lambda b, s: 4 * b * (s + 2),
        lambda b, s: b + s,
        lambda b, s: 2 * b + 3 * s - 1,
        lambda _b, s: s * s,
        lambda _b, s: s * (s - 1) // 2,
        lambda _b, s: s // 2,
        lambda _b, s: -(-s // 2),
        lambda b, s: b * (s // 2),
        lambda _b, s: -s % 4,
        lambda _b, s: s - s // 2,
    ],
)
def test_an_expression_is_found_and_holds_elsewhere(law):
    found = whole_number(tuple(law(*sizes) for sizes in SIZES), POINTS)
    assert found is not None
    assert [evaluated(found, {BATCH: b, SEQ: s}) for b, s in UNSEEN] == [law(b, s) for b, s in UNSEEN]


def test_an_end_is_found_where_it_was_reached_twice():
    found = whole_number(tuple(min(s, 10) for _, s in SIZES), POINTS)
    assert found is None or evaluated(found, {BATCH: 1, SEQ: 11}) != 11
    points = Points(tuple({SEQ: s} for s in (3, 5, 7, 11, 13)), {})
    found = whole_number(tuple(min(s, 8) for s in (3, 5, 7, 11, 13)), points)
    assert [evaluated(found, {SEQ: s}) for s in (1, 8, 9, 100)] == [1, 8, 8, 8]


def test_sizes_of_inner_values_make_products():
    inner = tuple(-(-s // 2) for _, s in SIZES)
    half = whole_number(inner, POINTS)
    points = Points(POINTS.at, {half: inner})
    found = whole_number(tuple(b * -(-s // 2) for b, s in SIZES), points)
    assert evaluated(found, {BATCH: 5, SEQ: 9}) == 25


@pytest.mark.parametrize("values", [(5, 9, 2, 6, 5), (1, 2, 4, 8, 16), (101, 3, 77, 2, 50)])
def test_what_follows_nothing_has_no_expression(values):
    assert whole_number(values, POINTS) is None
