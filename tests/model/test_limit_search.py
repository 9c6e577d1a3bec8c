"""Limits beside brute force: none excludes a size at which the model runs, over a whole grid."""

from __future__ import annotations

import itertools
import random

import pytest

from anyshape.model.limit_search import true_condition
from anyshape.sizes.notation import parse_condition
from tests.model.test_limits import Model, boundaries_of, explored, texts

HIGHEST = 24


def grid_of(model, highest=HIGHEST):
    values = itertools.product(range(1, highest + 1), repeat=len(model.base))
    return [dict(zip(model.base, row, strict=True)) for row in values]


def wrongly_excluded(model, found, highest=HIGHEST):
    return [sizes for sizes in grid_of(model, highest) if model.runs(sizes) and not found.holds(sizes)]


def failing_inside(model, found, highest=HIGHEST):
    return [sizes for sizes in grid_of(model, highest) if not model.runs(sizes) and found.holds(sizes)]


# ---- conditions that are found exactly

EXACT = [
    (Model("a == b or a == 1 or b == 1", a=4, b=4), ["b == a or a == 1 or b == 1"]),
    (Model("a == b or a == 1 or b == 1", a=2, b=2), ["b == a or a == 1 or b == 1"]),
    (Model("a == b or a == 1 or b == 1", a=1, b=1), ["b == a or a == 1 or b == 1"]),
    (Model("a == b or b == 1", a=4, b=4), ["b == a or b == 1"]),
    (Model("(a == b or 1 in (a, b)) and (c == d or 1 in (c, d))", a=4, c=5, b=4, d=5),
     ["b == a or a == 1 or b == 1", "d == c or c == 1 or d == 1"]),
    (Model("c == a + b or c == 1", a=3, b=5, c=8), ["c == a + b or c == 1"]),
    (Model("not 10 <= n <= 20", n=5), ["n <= 9 or n >= 21"]),
    (Model("n != 7", n=6), ["n <= 6 or n >= 8"]),
    (Model("not 6 <= n <= 8 and not 14 <= n <= 19", n=3), ["n <= 13 or n >= 20", "n <= 5 or n >= 9"]),
    (Model("n <= 16 or n >= 22", n=6, m=3), ["n <= 16 or n >= 22"]),
    (Model("n <= 12 or m >= 9", n=5, m=6), ["n <= 12 or m >= 9"]),
    (Model("n % 4 == 0 or n < 4", n=8), ["n % 4 == 0 or n <= 4"]),
    (Model("a * b % 6 == 0", a=4, b=3), ["a * b % 6 == 0"]),
    (Model("(a + b) % 4 == 0", a=5, b=7), ["(a + b) % 4 == 0"]),
    (Model("h % k == 0", k=2, h=4), ["h % k == 0"]),
    (Model("a * b <= 42", a=9, b=4), ["a * b <= 42"]),
    (Model("a * b >= 5", a=3, b=3), ["a * b >= 5"]),
    (Model("7 <= n <= 20", n=9), ["n <= 20", "n >= 7"]),
]  # fmt: skip


@pytest.mark.parametrize(("model", "expected"), EXACT, ids=lambda value: getattr(value, "condition", ""))
def test_a_limit_is_the_condition_itself(model, expected):
    model.asked.clear()
    found = explored(model, f"1..{HIGHEST}")
    highest = HIGHEST if len(model.base) < 3 else 9
    assert texts(found) == expected
    assert wrongly_excluded(model, found, highest) == failing_inside(model, found, highest) == []
    assert len(model.asked) < 450


# ---- conditions that have no simple form: what is stated is true, the rest is told as it is

ROUGH = [
    Model("2 * a + b <= 40", a=4, b=8),
    Model("n not in (7, 11, 13, 17, 19, 23)", n=8),
    Model("int(n ** 0.5) ** 2 == n", n=16),
    Model("n % 6 in (0, 1)", n=6),
    Model("bin(n).count('1') < 3", n=4),
    Model("a * b <= 60 and (b < 6 or a % 2 == 0)", a=4, b=3),
    Model("a == b or a == 3", a=5, b=5),
    Model("a != 7 or b == 2", a=6, b=3),
    Model("a == 5", a=5, b=10),
]


@pytest.mark.parametrize("model", ROUGH, ids=lambda model: model.condition)
def test_what_has_no_simple_form_is_not_simplified(model):
    assert wrongly_excluded(model, explored(model, f"1..{HIGHEST}")) == []


def test_three_that_broadcast_are_tied_two_by_two():
    model = Model("len({a, b, c} - {1}) <= 1", a=4, b=4, c=4)
    found = boundaries_of(model, f"1..{HIGHEST}")
    assert texts(found) == ["b == a or a == 1 or b == 1", "c == a or a == 1 or c == 1"]
    assert found.explain({"a": 1, "b": 3, "c": 24})
    assert texts(found)[2:] == ["c == b or b == 1 or c == 1"]
    assert wrongly_excluded(model, found, 9) == failing_inside(model, found, 9) == []


def test_holes_without_end_are_taken_back():
    found = explored(ROUGH[1], f"1..{HIGHEST}")
    assert found.limits == ()
    assert len(found.unexplained) > 4


# ---- conditions by lot


def atoms(lot):
    d, e = lot.sample(("a", "b"), 2)
    number, step = lot.randint(3, 16), lot.choice((2, 3, 4, 5, 8))
    return (
        f"{d} <= {number + 6}", f"{d} >= {number // 2}", f"{d} % {step} == 0", f"{d} != {number}",
        f"not {number} <= {d} <= {number + 3}", f"{d} == {e}", f"{d} == {e} + 2", f"{d} + {e} <= {number + 10}",
        f"{d} * {e} <= {6 * number}", f"{d} <= {e}", f"{d} * {e} % {step} == 0", f"({d} + {e}) % {step} == 0",
        f"{d} % {e} == 0", f"{d} - {e} <= {step}", f"{d} == {e} or {d} == 1 or {e} == 1",
    )  # fmt: skip


def model_by_lot(seed):
    lot = random.Random(seed)
    text = " and ".join(f"({lot.choice(atoms(lot))})" for _ in range(lot.choice((1, 1, 2))))
    valid = [sizes for sizes in grid_of(Model(text, a=1, b=1)) if Model(text, a=1, b=1).runs(sizes)]
    return Model(text, **lot.choice([sizes for sizes in valid if max(sizes.values()) <= 12] or valid or [{}]))


@pytest.mark.parametrize("seeds", [range(start, start + 10) for start in range(0, 40, 10)], ids=lambda seeds: seeds[0])
def test_no_limit_excludes_a_size_that_runs(seeds):
    for model in map(model_by_lot, seeds):
        if model.base:
            assert wrongly_excluded(model, explored(model, f"1..{HIGHEST}")) == [], model.condition


# ---- one condition


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("n <= 9", 0, None),
        ("n <= 9", 1, "n <= 9 or n >= 21"),
        ("n <= 8", 1, "n <= 9 or n >= 21"),
        ("n <= 12", 1, None),
        ("n <= 9 or n >= 21", 0, "n <= 9 or n >= 21"),
        ("n <= 9 or n >= 23", 0, None),
    ],
)
def test_a_condition_is_asked_beyond_before_it_is_true(text, most, expected):
    found = boundaries_of(Model("not 10 <= n <= 20", n=5))
    true = true_condition(found, parse_condition(text), {"n": 15}, most_others=most)
    assert (None if true is None else str(true)) == expected


def test_far_sizes_are_asked_where_they_cost_little():
    model = Model("n <= 16 or n >= 900", n=6)
    assert texts(explored(model, "1..")) == ["n <= 16 or n >= 900"]
