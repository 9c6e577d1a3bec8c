"""Structures are settled by a model; here it is a function of sizes, so that every answer can be foreseen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest

from anyshape.model.proposal.call_structures import CallPart, DimSteps, settle, steps_of


@dataclass
class Model:
    """Runs where `accepts` says so; the places are called a.0, b.0 and so on."""

    accepts: object
    asked: list = field(default_factory=list)

    def runs(self, sizes):
        self.asked.append(dict(sizes))
        return self.accepts(**{leaf: size for (leaf, _), size in sizes.items()})


def settled(accepts, *, still=(), followers=(), **columns):
    parts = [CallPart(((name, 0),), column, name in followers) for name, column in columns.items()]
    model = Model(accepts)
    found = settle(parts, 0, model, still)
    names = dict(enumerate(columns))
    return _texts(found.structure, names), found, model


def _texts(structure, names):
    return [names[i] if formula is None else formula.text(names) for i, formula in enumerate(structure.formulas)]


def test_a_coincidence_is_settled_by_the_sizes_of_the_calls_in_new_combinations():
    texts, _, model = settled(lambda a, b: True, a=(3, 4), b=(4, 5))
    assert texts == ["a", "b"]
    assert {(one["a", 0], one["b", 0]) for one in model.asked} == {(4, 4), (3, 5)}


def test_what_the_model_refuses_to_move_apart_follows():
    texts, _, _ = settled(lambda a, b: b == a + 1, a=(3, 4), b=(4, 5))
    assert texts == ["a", "a + 1"]


def test_growing_but_not_shrinking_is_no_independence():
    texts, _, _ = settled(lambda a, b: b >= a + 1, a=(3, 6), b=(4, 7))
    assert texts == ["a", "a + 1"]


def test_of_two_readings_the_model_chooses_one():
    columns = dict(
        a=(2, 3), b=(3, 5), c=(4, 6)
    )  # c is 2 * a and b + 1 in the first call, 2 * a and b + 1 in the second
    assert settled(lambda a, b, c: c == 2 * a, **columns)[0] == ["a", "b", "2 * a"]
    assert settled(lambda a, b, c: c == b + 1, **columns)[0] == ["a", "b", "b + 1"]


def test_equal_columns_may_be_two_dims_and_their_sum_a_third():
    columns = dict(past=(4, 6), seq=(4, 6), total=(8, 12))
    texts, _, _ = settled(lambda past, seq, total: total == past + seq, **columns)
    assert texts == ["past", "seq", "past + seq"]
    _, found, _ = settled(lambda past, seq, total: total == 2 * past and past == seq, **columns)
    assert list(found.structure.sizes({0: 5}).values()) == [5, 5, 10]


def test_a_product_follows_both():
    texts, _, _ = settled(lambda h, w, n: n == h * w, h=(3, 5), w=(4, 2), n=(12, 10))
    assert texts == ["h", "w", "h * w"]


def test_a_mask_follows_a_sum_although_the_model_takes_any_length():
    texts, _, _ = settled(lambda **_: True, past=(4, 7), seq=(2, 3), mask=(6, 10), followers=["mask"])
    assert texts == ["past", "seq", "past + seq"]


def test_a_mask_follows_a_size_and_what_stands_still():
    texts, _, _ = settled(lambda **_: True, past=(4, 7), mask=(9, 12), followers=["mask"], still={5})
    assert texts == ["past", "past + 5"]


def test_two_sums_for_a_mask_are_rivals_where_the_model_takes_both():
    columns = dict(a=(2, 3), b=(4, 6), c=(1, 2), d=(5, 7), mask=(6, 9))
    texts, found, _ = settled(lambda **_: True, followers=["mask"], **columns)
    assert texts[-1] == "a + b"
    assert [_texts(rival, dict(enumerate(columns)))[-1] for rival in found.rivals] == ["c + d"]


@pytest.mark.parametrize("text", ["n // 4 + 1", "(n + 3) // 4"])
def test_readings_that_are_equal_at_all_sizes_of_the_calls_are_told_apart_at_another(text):
    texts, found, _ = settled(lambda n, part: part == eval(text), n=(9, 18), part=(3, 5))
    assert texts == ["n", text]
    assert found.rivals == ()


def test_what_no_reading_explains_stays_a_dim():
    texts, found, _ = settled(lambda k, n: k <= n, k=(2, 6), n=(5, 9))
    assert texts == ["k", "n"]
    assert found.unsettled == ()


def test_where_nothing_runs_the_plainest_reading_is_taken_and_said_to_be_unsettled():
    texts, found, _ = settled(lambda **_: False, a=(3, 4), b=(4, 5))
    assert texts == ["a", "a + 1"]
    assert found.unsettled == (1,)


def test_a_size_of_one_is_not_asked_with_since_everything_is_stretched_to_it():
    texts, _, model = settled(lambda a, b: a == b or 1 in (a, b), a=(5, 1), b=(5, 1))
    assert texts == ["a", "a"]
    assert (4, 5) in {(one["a", 0], one["b", 0]) for one in model.asked}


def test_a_mask_that_is_strict_about_its_own_length_is_a_dim_although_a_sum_fits():
    texts, found, _ = settled(lambda a, b, mask: mask in (7, 9), a=(2, 3), b=(5, 6), mask=(7, 9), followers=["mask"])
    assert texts == ["a", "b", "mask"]
    assert found.unsettled == ()


def test_a_mask_for_every_head_is_a_multiple_although_a_sum_fits():
    columns = dict(batch=(2, 3), seq=(5, 8), mask=(8, 12))
    texts, _, _ = settled(lambda batch, seq, mask: mask == 4 * batch, followers=["mask"], **columns)
    assert texts == ["batch", "seq", "4 * batch"]


# ---- in which steps a dim moves


def outputs(accepts, shape=lambda size: ((size, 4),)):
    return lambda size: shape(size) if accepts(size) else None


def test_a_model_that_takes_what_lies_between_has_no_step():
    assert steps_of((8, 24), outputs(lambda n: n > 0)) == DimSteps()


def test_sizes_that_differ_by_one_need_no_run():
    def never(size):
        raise AssertionError

    assert steps_of((7, 8), never) == DimSteps()


@pytest.mark.parametrize("column", [(8, 24), (16, 24), (8, 16), (32, 16, 56)])
def test_the_smallest_step_is_found(column):
    found = steps_of(column, outputs(lambda n: n % 4 == 0))
    assert (found.step, found.lowest, found.notation) == (4, 4, "4.. step 4")


def test_a_step_need_not_start_at_a_multiple():
    assert steps_of((33, 65), outputs(lambda n: n % 16 == 1)).notation == "1.. step 16"


def test_the_lowest_size_is_one_that_runs():
    assert steps_of((48, 80), outputs(lambda n: n % 8 == 0 and n >= 24)).notation == "24.. step 8"


def test_a_bound_just_above_the_calls_does_not_hide_the_step():
    assert steps_of((16, 32), outputs(lambda n: n % 8 == 0 and n <= 32)).notation == "8.. step 8"


def test_a_step_at_which_another_axis_starts_to_move_is_none():
    """`int(15 / 6.0)` windows and a view that takes what is left: it runs, and channels are no longer channels."""

    def shape(size):
        windows = size // 6
        return ((windows, 8 * size // (6 * windows)),)

    assert steps_of((12, 24), outputs(lambda n: n % 3 == 0 and n >= 6, shape)).notation == "6.. step 6"


def test_a_grid_of_tokens_is_a_square():
    found = steps_of((16, 25), outputs(lambda n: math.isqrt(n) ** 2 == n))
    assert found.is_square
    assert found.notation is None


def test_a_size_of_zero_in_a_call_is_meant():
    assert steps_of((0, 5), outputs(lambda n: True)).notation == "0.."


def test_where_only_the_sizes_of_the_calls_run_no_step_is_claimed():
    assert steps_of((8, 24), outputs(lambda n: n in (8, 24))) == DimSteps()
