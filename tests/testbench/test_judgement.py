from __future__ import annotations

import math
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
import torch

from anyshape.sizes import budgets
from anyshape.testbench.judgement import (
    FACTOR,
    Difference,
    MovedRuns,
    Noises,
    Oracles,
    Tolerance,
    judge,
    moved_by_rounding,
)

inf, nan = math.inf, math.nan


def array(values):
    """What is judged are arrays; torch makes them here, since numpy has no bfloat16 of its own."""
    tensor = torch.as_tensor(values)
    return tensor.float().numpy().astype(ml_dtypes.bfloat16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def oracles(exact=None, jittered=(), noises=None, **options):
    known, runs = None if exact is None else array(exact), list(map(array, jittered))
    at = lambda number: runs[number] if number < len(runs) else None  # noqa: E731
    return Oracles(lambda: known, at, noises or Noises(), **options)


def unasked():
    def fail(*_):
        raise AssertionError("nothing more needs to be run")

    return Oracles(fail, fail)


def judged(actual, expected, further=None, tolerance=None):
    return judge(array(actual), array(expected), further or oracles(), tolerance or Tolerance())


def sentence(*args, **kwargs):
    difference = judged(*args, **kwargs).difference
    return None if difference is None else difference.sentence


def by_lot(*shape, dtype=torch.float32, scale=1.0):
    return (torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * scale).to(dtype)


# ---- types and shapes


@pytest.mark.parametrize(
    ("actual", "expected", "kind", "text"),
    [
        (torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.int64), "wrong-type",
         "has type int32, in PyTorch int64"),
        (torch.zeros(2), torch.zeros(2, dtype=torch.bool), "wrong-type", "has type float32, in PyTorch bool"),
        (torch.zeros(2, 3), torch.zeros(3, 2), "wrong-shape", "has shape (2, 3), in PyTorch (3, 2)"),
        (torch.zeros(()), torch.zeros(1), "wrong-shape", "has shape (), in PyTorch (1,)"),
        (torch.zeros(0, 3), torch.zeros(0, 2), "wrong-shape", "has shape (0, 3), in PyTorch (0, 2)"),
    ],
)  # fmt: skip
def test_another_type_or_shape_is_wrong(actual, expected, kind, text):
    judgement = judged(actual, expected, unasked())
    assert judgement.difference == Difference(kind, text)
    assert judgement.ratio == inf


def test_empty_outputs_of_one_shape_are_the_same():
    assert judged(torch.zeros(0, 3), torch.zeros(0, 3), unasked()).difference is None


# ---- floats


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30, 1e-6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_a_difference_of_a_rounding_needs_no_further_run(dtype, scale):
    if dtype == torch.float16 and scale != 1.0:
        scale = 1e-3
    expected = by_lot(50, dtype=dtype, scale=scale)
    actual = expected.double() * (1 + torch.finfo(dtype).eps)
    judgement = judged(actual.to(dtype), expected, unasked())
    assert judgement.difference is None
    assert judgement.ratio <= 2


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_an_error_is_wrong_whatever_the_scale(scale):
    expected = by_lot(50, scale=scale)
    actual = expected.clone()
    actual[7] += 1e-3 * scale
    assert judged(actual, expected, oracles(expected.double())).difference is not None


def test_the_sentence_says_how_far_it_is_and_what_is_allowed():
    expected = torch.tensor([1.0, 2.0, 4.0])
    text = sentence(torch.tensor([1.0, 2.31, 4.0]), expected, oracles(expected.double()))
    assert text == f"differs by 0.31 (allowed {FACTOR * 2 * torch.finfo(torch.float32).eps:.2g})"
    assert text == "differs by 0.31 (allowed 1.9e-06)"


def test_the_noise_is_what_the_model_itself_loses_in_float32():
    exact = by_lot(50, dtype=torch.float64)
    expected = (exact + 1e-5).float()
    assert judged((exact - 5e-5).float(), expected, oracles(exact)).difference is None
    assert sentence((exact - 1e-3).float(), expected, oracles(exact)) == "differs by 0.001 (allowed 0.00016)"


SMALL_BESIDE_LARGE = torch.cat([by_lot(40), torch.full((40,), -1e9)])


@pytest.mark.parametrize("large", [-1e9, torch.finfo(torch.float32).min, -1e4, 1.7e9])
def test_large_values_lend_no_noise_to_small_ones(large):
    exact = torch.cat([by_lot(40, dtype=torch.float64), torch.full((40,), large, dtype=torch.float64)])
    exact[40:] *= 1 + 1e-7  # which float32 loses
    expected = exact.float()
    actual = expected.clone()
    actual[3] += 1e-4
    assert judged(actual, expected, oracles(exact, [expected] * 30)).difference is not None
    actual = expected.clone()
    actual[50] *= 1 + 2e-7
    assert judged(actual, expected, oracles(exact, [expected] * 30)).difference is None


def test_one_element_that_jumps_excuses_no_other():
    exact = torch.arange(40.0).double()
    expected = exact.float()
    exact[7] += 1  # rounding decides it: float64 says another number
    jittered = [expected.clone() for _ in range(24)]
    jittered[2][9] += 1
    for place, excused in ((7, True), (9, True), (12, False)):
        actual = expected.clone()
        actual[place] += 1
        assert (judged(actual, expected, oracles(exact, jittered)).difference is None) is excused
        actual[place] += 2  # it jumps by one, and not further
        assert judged(actual, expected, oracles(exact, jittered)).difference is not None


def test_what_follows_from_a_decision_that_fell_otherwise_is_rounded_as_well():
    expected = by_lot(40)
    jittered = [expected.clone() for _ in range(24)]
    jittered[2][9] += 1
    for further, excused in ((5e-7, True), (1e-4, False)):
        actual = expected.clone()
        actual[9] += 1 + further
        assert (judged(actual, expected, oracles(expected.double(), jittered)).difference is None) is excused


def test_what_jumps_from_zero_is_rounded_where_it_lands():
    expected, flipped = torch.zeros(4), torch.tensor([0.0, 5.3, 0.0, 0.0])
    further = oracles(expected.double(), [expected, flipped, expected])
    assert judged(flipped * (1 + 2e-7), expected, further).difference is None
    assert judged(flipped * (1 + 1e-4), expected, further).difference is not None


def test_an_element_that_cancels_is_judged_by_how_far_it_moves():
    expected = torch.cat([by_lot(40), torch.tensor([1e-12])])
    jittered = [expected + 1e-6 * (-1) ** number for number in range(4)]
    actual = expected.clone()
    actual[40] += 9e-7
    assert judged(actual, expected, oracles(expected.double(), jittered)).difference is None
    assert judged(actual, expected, oracles(expected.double(), [expected] * 4)).difference is not None


def measured(loss, times=4):
    """What was learnt in so many calls that lost so much."""
    noises = Noises()
    for seed in range(times):
        expected = torch.randn(4000, generator=torch.Generator().manual_seed(seed))
        judged(expected * 2, expected, oracles(expected.double() + loss, [expected], noises))
    return noises


def test_noise_that_was_measured_at_four_sizes_is_relied_on_at_others():
    expected = by_lot(200)
    further = Oracles(unasked().exact, unasked().jittered, measured(2e-6))
    judgement = judged(expected + 6e-6, expected, further)
    assert judgement.difference is None
    assert judgement.ratio < FACTOR / 2


@pytest.mark.parametrize(
    ("loss", "times", "error"), [(2e-6, 3, 6e-6), (2e-6, 4, 2.5e-5), (1e-9, 4, 6e-6)],
    ids=["measured too seldom", "more than half of what is allowed", "less noise at another size"],
)  # fmt: skip
def test_noise_is_measured_again_where_the_rest_does_not_settle_it(loss, times, error):
    expected = by_lot(200)
    further = oracles(expected.double(), [expected] * 4, measured(loss, times))
    assert judged(expected + error, expected, further).difference is not None


def test_a_lucky_zero_is_judged_by_jittered_runs():
    expected, noisy = torch.zeros(4), [torch.full((4,), 8e-6)]
    assert judged(torch.full((4,), 5e-6), expected, oracles(torch.zeros(4).double(), noisy)).difference is None
    assert sentence(torch.full((4,), 1e-3), expected, oracles(torch.zeros(4).double(), noisy)) == (
        "differs by 0.001 (allowed 8e-06)"
    )


@pytest.mark.parametrize("exact", [None, torch.zeros(4).double()])
def test_a_zero_that_never_moves_must_be_zero(exact):
    assert judged(torch.zeros(4), torch.zeros(4), unasked()).difference is None
    judgement = judged(torch.tensor([0.0, 1e-30, 0, 0]), torch.zeros(4), oracles(exact, [torch.zeros(4)]))
    assert judgement.difference.sentence == "differs by 1e-30 (allowed 0)"
    assert judgement.ratio == inf


def test_without_float64_a_small_part_of_each_value_is_allowed():
    expected = torch.tensor([100.0, 1.0])
    assert judged(torch.tensor([100.0009, 1.000009]), expected).difference is None
    assert sentence(torch.tensor([100.0, 1.001]), expected) == "differs by 0.001 (allowed 1e-05)"
    assert (
        judged(torch.tensor([100.0, 1.001]), expected, oracles(None, [torch.tensor([100.0, 1.002])])).difference is None
    )


def test_without_float64_a_half_float_may_lose_its_own_roundings():
    expected = by_lot(50, dtype=torch.float16)
    actual = (expected.double() * (1 + 3 * torch.finfo(torch.float16).eps)).half()
    assert judged(actual, expected).difference is None
    assert judged((expected.double() + 0.1).half(), expected).difference is not None


def test_a_float64_run_of_another_shape_or_with_nan_settles_nothing():
    expected = torch.tensor([100.0, 1.0])
    for exact in (torch.zeros(3).double(), torch.tensor([nan, 1.0]).double()):
        assert judged(torch.tensor([100.0, 1.000009]), expected, oracles(exact)).difference is None
        assert sentence(torch.tensor([100.0, 1.01]), expected, oracles(exact)) == "differs by 0.01 (allowed 1e-05)"


def test_nan_is_excused_where_pytorch_has_hardly_a_digit():
    inverse, exact = torch.tensor([-1.6e7, 0.5]), torch.tensor([7.5e15, -0.16]).double()  # of a singular matrix
    assert judged(torch.tensor([nan, nan]), inverse, oracles(exact)).difference is None
    assert sentence(torch.tensor([nan, nan]), inverse, oracles(inverse.double())) == "has 2 NaN, in PyTorch 0"
    logarithm, none = torch.tensor([-17.0, 0.5]), torch.tensor([nan, 0.5]).double()  # of a determinant
    assert judged(torch.tensor([nan, 0.5]), logarithm, oracles(none)).difference is None
    assert sentence(torch.tensor([nan, nan]), logarithm, oracles(none)) == "has 1 NaN, in PyTorch 0"
    noise = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1e-20]).double()
    assert sentence(torch.tensor([1.0, nan]), noise[0], oracles(noise[1])) == "has 1 NaN, in PyTorch 0"


@pytest.mark.parametrize(("exact", "error"), [(None, 5e-5), (torch.tensor([1.0, 2.0]).double(), 5e-6)])
def test_a_larger_factor_allows_more_with_and_without_float64(exact, error):
    expected = torch.tensor([1.0, 2.0])
    assert judged(expected + error, expected, oracles(exact)).difference is not None
    assert judged(expected + error, expected, oracles(exact), Tolerance(factor=8 * FACTOR)).difference is None


@pytest.mark.parametrize("given", [torch.float64, torch.float16, torch.bfloat16])
def test_another_float_type_is_wrong_unless_the_file_says_that_it_is_narrower(given):
    expected = by_lot(20).bfloat16().float()
    actual = expected.to(given)
    name = array(actual).dtype
    assert sentence(actual, expected, unasked()) == f"has type {name}, in PyTorch float32"
    assert judged(expected.half(), expected, oracles(takes_narrower=True), Tolerance(rtol=1e-2)).difference is None


# ---- NaN and inf


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        ([nan, 1.0, 2.0], [0.0, 1.0, 2.0], "has 1 NaN, in PyTorch 0"),
        ([0.0, 1.0, 2.0], [nan, 1.0, nan], "has 0 NaN, in PyTorch 2"),
        ([nan, 1.0, 2.0], [0.0, 1.0, nan], "has NaN at other places than in PyTorch"),
        ([inf, 1.0, 2.0], [0.0, 1.0, 2.0], "has 1 inf, in PyTorch 0"),
        ([inf, 1.0, 2.0], [-inf, 1.0, 2.0], "has 1 inf, in PyTorch 0"),
        ([3.4e38, 1.0], [-inf, 1.0], "has 0 -inf, in PyTorch 1"),
    ],
)
def test_special_values_must_stand_at_the_same_places(actual, expected, text):
    assert sentence(actual, expected, oracles(jittered=[torch.tensor(expected)])) == text


@pytest.mark.parametrize("values", [[nan, inf, -inf, 1.0], [nan, nan], [-inf]])
def test_the_same_special_values_are_the_same(values):
    assert judged(values, values, unasked()).difference is None


def test_the_rest_is_compared_beside_special_values():
    expected = torch.tensor([nan, -inf, 1.0])
    assert sentence([nan, -inf, 1.5], expected, oracles(expected.double())) == "differs by 0.5 (allowed 9.5e-07)"


def test_a_special_value_that_rounding_decides_is_excused_and_the_rest_is_still_compared():
    expected, jittered = torch.tensor([3e38, 1.0]), [torch.tensor([inf, 1.0]), torch.tensor([3e38, 1.0])]
    further = oracles(torch.tensor([3e38, 1.0]).double(), jittered)
    assert judged([inf, 1.0], expected, further).difference is None
    assert sentence([inf, 1.5], expected, further) == "differs by 0.5 (allowed 9.5e-07)"


# ---- integers


def test_integers_must_be_equal():
    text = sentence(torch.tensor([[1, 2], [9, 7]]), torch.tensor([[1, 2], [3, 4]]))
    assert text == "differs in 2 of 4 places, first at [1, 0]: 9, in PyTorch 3"
    assert (
        sentence(torch.tensor(True), torch.tensor(False))
        == "differs in 1 of 1 places, first at []: True, in PyTorch False"
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool, torch.int8])
def test_equal_integers_need_no_further_run(dtype):
    values = torch.tensor([0, 1, 1]).to(dtype)
    assert judged(values, values.clone(), unasked()).difference is None


def test_another_order_of_equal_values_is_right_and_nothing_else():
    expected, reordered = [[8.0, 0.0], [16.0, 8.0], [1.0, 2.0]], [[0.0, 400.0], [8.0, 16.0], [1.0, 2.0]]
    ties = oracles(reordered=lambda: array(reordered))
    assert sentence(reordered, expected, ties) is None
    assert sentence([[0.0, 400.00003], *expected[1:]], expected, ties) is None
    assert sentence([[0.0, 400.1], *expected[1:]], expected, ties) == "differs by 0.1 (allowed 0.00038)"
    assert sentence([*expected[:2], [1.0, 2.1]], expected, ties) == "differs by 0.1 (allowed 2e-05)"
    assert sentence([3, 1], [1, 3], oracles(reordered=lambda: array([3, 1]))) is None
    infinite = oracles(reordered=lambda: array([nan, 1.0, inf]))
    assert sentence([nan, 1.0, inf], [1.0, inf, nan], infinite) is None
    assert sentence([1.0, 1.0, inf], [1.0, inf, nan], infinite) is None
    assert sentence([nan, 1.0, -inf], [1.0, inf, nan], infinite) == "has 1 NaN, in PyTorch 2"


def test_a_tie_that_rounding_decides_is_excused_at_its_place_alone():
    expected, other = torch.tensor([4, 7, 2]), torch.tensor([4, 8, 2])
    assert judged(other, expected, oracles(jittered=[expected, other])).difference is None
    assert judged(other, expected, oracles(exact=other)).difference is None
    text = sentence(torch.tensor([4, 9, 2]), expected, oracles(jittered=[other]))
    assert text == "differs in 1 of 3 places, first at [1]: 9, in PyTorch 7"
    text = sentence(torch.tensor([5, 8, 2]), expected, oracles(jittered=[other]))
    assert text == "differs in 1 of 3 places, first at [0]: 5, in PyTorch 4"


def test_an_index_is_wrong_where_no_rounding_moves_it():
    expected = torch.tensor([4, 7])
    assert judged(torch.tensor([4, 8]), expected, oracles(expected, [expected] * 4)).difference is not None


def test_a_jittered_run_of_another_size_excuses_no_integer():
    further = oracles(jittered=[torch.tensor([1])])
    assert judged(torch.tensor([1, 2]), torch.tensor([1, 3]), further).difference is not None


# ---- the user's own tolerance


@pytest.mark.parametrize(
    ("tolerance", "allowed"),
    [
        (Tolerance(atol=0.5), 0.5),
        (Tolerance(rtol=0.1), 0.1),
        (Tolerance(atol=0.2, rtol=0.1), 0.3),
        (Tolerance(of_largest=0.01), 1.0),
        (Tolerance(of_largest=0.01, atol=0.5), 1.5),
    ],
)
def test_the_users_tolerance_is_elementwise(tolerance, allowed):
    expected = torch.tensor([1.0, 100.0], dtype=torch.float64)
    just, more = (torch.tensor([1 + times * allowed, 100.0], dtype=torch.float64) for times in (0.99, 1.6))
    assert judged(just, expected, unasked(), tolerance).difference is None
    assert judged(just, expected, unasked(), tolerance).ratio == pytest.approx(0.99)
    assert sentence(more, expected, unasked(), tolerance) == f"differs by {1.6 * allowed:.2g} (allowed {allowed:.2g})"


def test_what_a_narrow_file_loses_of_a_mask_is_not_allowed_elsewhere():
    expected, tolerance = torch.tensor([1.0, 2.0, -1e9]), Tolerance(of_largest=0.01)
    assert judged(torch.tensor([1.015, 2.0, -1.005e9]), expected, unasked(), tolerance).difference is None
    assert judged(torch.tensor([1.1, 2.0, -1e9]), expected, unasked(), tolerance).difference is not None


def test_a_tolerance_of_zero_allows_nothing():
    assert judged([1.0], [1.0], unasked(), Tolerance(atol=0.0)).ratio == 0.0
    judgement = judged([1.0 + 1e-6], [1.0], unasked(), Tolerance(atol=0.0))
    assert judgement.ratio == inf
    assert judgement.difference.sentence == "differs by 9.5e-07 (allowed 0)"


def test_the_sentence_has_as_many_digits_as_it_needs():
    assert sentence([1.50001], [1.0], unasked(), Tolerance(atol=0.5)) == "differs by 0.50001 (allowed 0.5)"


def test_integers_are_equal_whatever_the_tolerance():
    assert judged(torch.tensor([4]), torch.tensor([5]), oracles(), Tolerance(atol=3.0)).difference is not None


# ---- without a model: the noise of a file


def unmoved(expected):
    return lambda _: expected


def said_of_files(actual, expected, moved=None):
    found = judge(actual, expected, MovedRuns(moved or unmoved(expected))).difference
    return None if found is None else found.sentence


ONES = np.ones(4, np.float32)


def test_rounding_is_no_difference():
    assert said_of_files(ONES * np.float32(1 + 5e-6), ONES) is None


def test_more_than_rounding_is_one():
    assert said_of_files(ONES * np.float32(1.001), ONES) == "differs by 0.001 (allowed 1e-05)"


def test_what_moves_with_a_rounding_of_the_inputs_is_no_difference():
    assert said_of_files(ONES * np.float32(1.001), ONES, lambda _: ONES * np.float32(1.0005)) is None


def test_integers_must_be_equal_unless_a_rounding_decides_them():
    actual, expected = np.array([1, 2, 3]), np.array([1, 2, 4])
    assert said_of_files(actual, expected) == "differs in 1 of 3 places, first at [2]: 3, in the static file 4"
    assert said_of_files(actual, expected, lambda _: np.array([1, 2, 3])) is None


@pytest.mark.parametrize(
    ("actual", "said"),
    [
        (np.ones(4, np.float64), "has type float64, in the static file float32"),
        (np.ones((4, 1), np.float32), "has shape (4, 1), in the static file (4,)"),
        (np.array([1, 1, np.nan, 1], np.float32), "has 1 NaN, in the static file 0, or at other places"),
        (np.array([1, 1, -np.inf, 1], np.float32), "has 1 -inf, in the static file 0, or at other places"),
    ],
)
def test_type_shape_and_special_values_must_agree(actual, said):
    assert said_of_files(actual, ONES) == said


def test_special_values_at_the_same_places_are_equal():
    values = np.array([np.nan, np.inf, -np.inf, 2], np.float32)
    assert said_of_files(values.copy(), values) is None


def test_floats_go_to_a_neighbour_and_integers_stay():
    feeds = {"x": np.ones(100, np.float32), "ids": np.arange(3)}
    moved = moved_by_rounding(feeds, 1)
    assert set(np.unique(moved["x"])) == {np.nextafter(np.float32(1), np.float32(s)) for s in (0, 2)}
    assert moved["ids"] is feeds["ids"]


# ---- the same rule, said independently and one by one


def plainly(actual, expected, exact, jittered, factor=FACTOR):
    """Whether an output is right: the rule in its plainest form, where float64 can be had and few are alike."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    if not expected.is_floating_point():
        runs = torch.stack([expected, exact.to(expected.dtype), *jittered])
        return bool((runs == actual).any(0).all())
    rows = zip(*(t.double().flatten().tolist() for t in (actual, expected, exact, *jittered)), strict=True)
    limits = torch.finfo(expected.dtype)
    return all(_is_right(*row[:3], row[3:], limits, factor) for row in rows)


def _is_right(got, want, truth, moved, limits, factor):
    if not math.isfinite(want) or not math.isfinite(got):
        return got == want or (math.isnan(got) and math.isnan(want))
    if abs(got - want) < limits.tiny:
        return True
    own, epsilon = abs(want - truth), limits.eps
    rounding = epsilon * max(abs(truth), abs(want))
    if abs(got - want) <= (factor / 2 - 1) * epsilon * abs(want) or abs(got - truth) <= factor * rounding:
        return True
    # a loss of the usual kind is allowed eight times, a jump once
    usual = own if own <= factor * rounding else own / factor
    return abs(got - truth) <= factor * usual or abs(got - want) <= max((abs(m - want) for m in moved), default=0.0)


TYPES = [
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.int32, torch.int8, torch.uint8,
    torch.bool,
]  # fmt: skip


def drawn(chance, shape, dtype):
    if dtype == torch.bool:
        return torch.from_numpy(chance.random(shape) < 0.5) if shape else torch.tensor(bool(chance.random() < 0.5))
    if not dtype.is_floating_point:
        return torch.from_numpy(np.asarray(chance.integers(0, 5, shape))).to(dtype)
    values = torch.from_numpy(np.asarray(chance.standard_normal(shape) * 10.0 ** chance.integers(-4, 5)))
    for special in (nan, inf, -inf, 0.0):
        if chance.random() < 0.1:
            values = torch.where(torch.from_numpy(np.asarray(chance.random(shape) < 0.3)), special, values)
    return values.to(dtype)


def shaken(chance, values, times):
    """Moved by so many roundings; integers here and there by one."""
    if values.dtype.is_floating_point:
        moved = torch.from_numpy(np.asarray(chance.uniform(-1, 1, tuple(values.shape))))
        return values.double() * (1 + times * torch.finfo(values.dtype).eps * moved)
    places = torch.from_numpy(np.asarray(chance.random(tuple(values.shape)) < 0.2 * min(times, 1)))
    return torch.where(places, ~values if values.dtype == torch.bool else values + 1, values)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 4), (2, 0, 3)], ids=str)
def test_numpy_and_torch_come_to_the_same_judgement(shape, dtype):
    chance = np.random.default_rng(len(shape) * 100 + TYPES.index(dtype))
    for _ in range(60):
        expected = drawn(chance, shape, dtype)
        actual = shaken(chance, expected, chance.choice([0, 1, 4, 10, 1e4])).to(dtype)
        if chance.random() < 0.15:
            actual = drawn(chance, shape, TYPES[chance.integers(len(TYPES))])
        actual = actual.float() if actual.dtype == torch.bfloat16 else actual  # what no runtime gives
        exact = shaken(chance, expected, chance.choice([0, 1, 3]))
        jittered = [shaken(chance, expected, 2).to(dtype) for _ in range(chance.integers(0, 4))]
        if dtype.is_floating_point and not torch.equal(exact.isfinite(), expected.isfinite()):
            continue  # a sum that is inf in a narrow type alone: another rule
        # special values that a rounding makes or takes away are excused, which the plain rule does not know
        jittered = [run for run in jittered if not dtype.is_floating_point or run.isfinite().equal(expected.isfinite())]
        is_right = plainly(actual, expected, exact, jittered)
        found = judge(array(actual), array(expected), oracles(exact, jittered))
        # elements alike may lend some of their noise, and nothing is refused that the element itself allows
        assert found.difference is None or not is_right
        assert found.difference is not None or is_right or found.ratio > 1


# ---- what was measured before


def measured_before(values, *noises):
    known = Noises()
    for noise in noises:
        known.against_float64.measured(array(values), np.full(values.shape, noise))
    return known


def test_files_that_differ_as_much_as_most_calls_round_need_no_float64():
    want = by_lot(400).double()
    got = want + by_lot(400).double().roll(7) * 1e-6
    known = measured_before(want, 1e-6, 1e-6, 1e-6, 1e-11)  # at one size, hardly anything was rounded
    asked = Oracles(unasked().exact, unasked().jittered, known)
    assert judged(got, want, asked).difference is None


@pytest.mark.parametrize("error", [1e-5, 1e-4])
def test_one_element_that_differs_more_than_those_like_it_is_asked_about(error):
    want = by_lot(400).double()
    got = want + by_lot(400).double().roll(7) * 1e-7
    got[3] += error
    known = measured_before(want, 1e-5, 1e-5, 1e-5, 1e-11)
    assert judged(got, want, oracles(want, noises=known)).difference is not None


def test_all_elements_that_differ_more_than_calls_round_are_asked_about():
    want = by_lot(400).double()
    got = want * (1 + 1e-3)
    known = measured_before(want, 1e-6, 1e-6, 1e-6, 1e-11)
    assert judged(got, want, oracles(want, noises=known)).difference is not None


def test_what_is_the_same_is_seen_at_little_cost():
    values = np.random.default_rng(0).standard_normal(2**20, dtype=np.float32)
    other = values.copy()
    tracemalloc.start()
    assert judge(values, other, MovedRuns(lambda _: values)).ratio == 0.0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < values.nbytes


@pytest.mark.parametrize("moved", [0.5, 20.0, 3000.0], ids=["right", "in doubt", "wrong"])
def test_blocks_are_judged_as_the_whole(moved, monkeypatch):
    """Elements of several magnitudes, beside what calls before have told, and float64 and jitter where asked."""
    scale = 2.0 ** np.arange(-20, 30).repeat(100)
    want = (np.random.default_rng(0).standard_normal(5000) * scale).astype(np.float32)
    got = want * np.float32(1 + moved * 2**-23)
    exact, jittered = want.astype(np.float64) * (1 + 2**-24), [want * np.float32(1 + 2**-22)] * 24

    def found():
        noises = Noises()
        noises.against_float64.measured(want, np.abs(want) * 2.0**-23)
        asked = Oracles(lambda: exact, lambda number: jittered[number], noises)
        return [judge(got, want, asked) for _ in range(6)]

    whole = found()
    monkeypatch.setattr(budgets, "ELEMENTS_OF_A_BLOCK", 64)
    assert found() == whole


def test_a_large_output_is_judged_in_little_memory():
    """A vocabulary for each word: ten numbers in float64 of each were as large as the weights behind them."""
    want = np.random.default_rng(0).standard_normal(2**21, dtype=np.float32)
    got, exact = want * np.float32(1 + 2**-22), want.astype(np.float64)
    noises = Noises()
    for _ in range(5):
        tracemalloc.start()
        assert judge(got, want, Oracles(lambda: exact, unasked().jittered, noises)).difference is None
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5 * exact.nbytes
