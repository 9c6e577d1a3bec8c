"""Columns of numbers are fitted exactly; a whole number seen at several sizes becomes what somebody wrote."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anyshape.sizes.expressions import dim_symbol, evaluated
from anyshape.sizes.fit import (
    Observation,
    Points,
    fit_outputs,
    holding,
    line_through,
    offset_of,
    plus,
    quotient_offsets,
    ratio_of,
    whole_line,
    whole_number,
)

quick = settings(max_examples=40, deadline=None, derandomize=True)
columns = st.integers(2, 6).flatmap(lambda n: st.tuples(*[st.tuples(*[st.integers(0, 60)] * n)] * 2))


# ---- the arithmetic


@quick
@given(columns, st.integers(-9, 9), st.integers(-9, 9))
def test_a_line_is_found_again(pair, slope, start):
    _, known = pair
    column = tuple(slope * n + start for n in known)
    assume(len(set(known)) > 1)
    assert whole_line(column, known) == (slope, start)
    assert line_through(column, known) == (slope, start)
    assert (offset_of(column, known) is None) == (slope != 1)


@quick
@given(columns)
def test_no_line_misses_a_point(pair):
    column, known = pair
    line = line_through(column, known)
    if line is not None:
        assert [line[0] * n + line[1] for n in known] == list(column)


def test_one_point_has_no_line_and_a_broken_slope_is_not_whole():
    assert line_through((3, 3), (2, 2)) is None
    assert line_through((3, 4), (2, 2)) is None
    assert line_through((2, 3, 4), (1, 3, 5)) == (Fraction(1, 2), Fraction(3, 2))
    assert whole_line((2, 3, 4), (1, 3, 5)) is None


@quick
@given(columns, st.integers(1, 9), st.integers(1, 9))
def test_a_ratio_is_found_again(pair, above, below):
    known = tuple(below * (n + 1) for n in pair[0])
    assert ratio_of(tuple(n * above // below for n in known), known) == Fraction(above, below)


def test_nothing_is_a_multiple_of_nothing():
    assert ratio_of((4, 6), (0, 3)) is None
    assert ratio_of((4, 6), (2, 2)) is None


@quick
@given(columns, st.integers(2, 12), st.integers(-30, 30))
def test_the_offsets_of_a_quotient_are_all_that_give_it_and_no_others(pair, divisor, offset):
    column, known = pair
    computed = tuple((n + offset) // divisor for n in known)
    assert offset in quotient_offsets(computed, known, divisor)
    for candidate in range(-40, 41):
        gives = tuple((n + candidate) // divisor for n in known) == column
        assert (candidate in quotient_offsets(column, known, divisor)) == gives


def test_only_what_gives_every_number_holds():
    squares = (4, 9, 16)
    assert list(holding([4, 2, 3], squares, lambda power, index: (index + 2) ** power)) == [2]
    assert list(holding([None], squares, lambda _, __: None)) == []


@pytest.mark.parametrize(("constant", "text"), [(2, "n + 2"), (0, "n"), (-3, "n - 3")])
def test_a_constant_is_added_as_people_write_it(constant, text):
    assert plus("n", constant) == text


# ---- families of expressions come back from their numbers

SIMPLE = (
    "{a}", "{k} * {a}", "{k} * {a} + {c}", "{a} - {c}", "{a} + {b} + {c}", "{a} * {b}", "{k} * {a} * {b}",
    "{a} * {b} + {c}", "min({a}, {b})", "max({a}, {b})",
)  # fmt: skip
texts = st.builds(
    lambda form, k, c, names: form.format(k=k, c=c, a=names[0], b=names[1]),
    st.sampled_from(SIMPLE), st.integers(2, 9), st.integers(1, 9), st.permutations(("batch", "seq", "w")),
)  # fmt: skip
rows = st.lists(st.fixed_dictionaries({d: st.integers(1, 50) for d in ("batch", "seq", "w")}), min_size=12, max_size=16)
FAR = [{"batch": 91, "seq": 64, "w": 77}, {"batch": 1, "seq": 300, "w": 2}, {"batch": 5, "seq": 4, "w": 1000}]


@quick
@given(texts, rows)
def test_the_size_of_an_output_is_recovered_wherever_it_goes(text, sizes):
    seen = [Observation(at, ((eval(text, {}, dict(at)),),)) for at in sizes]
    assume(len({tuple(at.values()) for at in sizes}) == len(sizes))
    ((fitted,),) = fit_outputs(seen, None, [])
    value = (lambda _: fitted) if isinstance(fitted, int) else fitted.value
    assert all(value(one.sizes) == one.shapes[0][0] for one in seen)
    if not isinstance(fitted, int) and "min" not in text + str(fitted) and "max" not in text + str(fitted):
        assert [value(at) for at in FAR] == [eval(text, {}, dict(at)) for at in FAR]


@quick
@given(rows, st.lists(st.integers(1, 400), min_size=16, max_size=16))
def test_no_expression_of_an_output_misses_a_run(sizes, numbers):
    seen = [Observation(at, ((n,),)) for at, n in zip(sizes, numbers, strict=False)]
    ((fitted,),) = fit_outputs(seen, None, [])
    if fitted is not None and not isinstance(fitted, int):
        assert all(fitted.value(one.sizes) == one.shapes[0][0] for one in seen)


# ---- whole numbers

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


WHOLE = (
    "{k} * s",
    "{k} * s + {c}",
    "b * s + {c}",
    "b * (s + {c})",
    "{k} * b * s",
    "s // {k}",
    "(s + {k} - 1) // {k}",
    "s * s",
)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.sampled_from(WHOLE), st.integers(2, 7), st.integers(1, 5))
def test_a_whole_number_of_a_known_family_is_recovered(form, k, c):
    text = form.format(k=k, c=c)
    found = whole_number(tuple(eval(text, {"b": b, "s": s}) for b, s in SIZES), POINTS)
    assert [evaluated(found, at) for at in POINTS.at] == [eval(text, {"b": b, "s": s}) for b, s in SIZES]
    if "//" not in text:
        assert [evaluated(found, {BATCH: b, SEQ: s}) for b, s in UNSEEN] == [
            eval(text, {"b": b, "s": s}) for b, s in UNSEEN
        ]


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.tuples(*[st.integers(0, 60)] * len(SIZES)))
def test_no_expression_of_a_whole_number_misses_a_point(column):
    found = whole_number(column, POINTS)
    if found is not None:
        assert tuple(evaluated(found, at) for at in POINTS.at) == column
