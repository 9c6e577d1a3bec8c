from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.sizes import budgets
from anyshape.testbench.likeness import NoiseByOctave, largest_alike, lent_noise, octaves_of

FLOATS = st.floats(-1e30, 1e30, allow_nan=False).filter(lambda value: value == 0 or abs(value) > 1e-30)


def _drawn(count: int, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(count) * scale


def test_an_octave_is_a_factor_of_two() -> None:
    assert octaves_of(np.array([1.0, -1.9, 2.0, 0.5])).tolist() == [1, 1, 2, 0]
    assert octaves_of(np.zeros(1))[0] < octaves_of(np.array([1e-300]))[0]


def test_noise_is_lent_among_elements_of_like_magnitude() -> None:
    values, noise = _drawn(2000), np.abs(_drawn(2000, 1e-6))
    lent = lent_noise(values, noise)
    assert 1e-6 < float(np.median(lent)) < 4e-6


@pytest.mark.parametrize("large", [1e4, 1e9, 3e38])
def test_a_gap_ends_it(large: float) -> None:
    values = np.concatenate([_drawn(200), np.full(200, large)])
    noise = np.concatenate([np.full(200, 1e-8), np.full(200, large * 1e-7)])
    lent = lent_noise(values, noise)
    assert float(lent[:200].max()) < 1e-7
    assert float(lent[200:].min()) == pytest.approx(2 * large * 1e-7)


def test_magnitudes_without_a_gap_keep_their_own_noise_where_each_has_enough() -> None:
    values = 2.0 ** np.random.default_rng(0).uniform(-10, 10, 4000)
    lent = lent_noise(values, values * 1e-7)
    assert float((lent / values).max()) < 1e-6


def test_a_few_that_jump_lend_nothing() -> None:
    noise = np.zeros(40)
    noise[[3, 7, 20]] = 1.0
    assert float(lent_noise(1 + np.abs(_drawn(40)) % 1, noise).max()) == 0.0


def test_zeros_are_lent_nothing() -> None:
    assert lent_noise(np.array([0.0, 1.0]), np.array([0.0, 1e-7]))[0] == 0.0


def test_the_largest_alike_is_behind_no_gap() -> None:
    assert largest_alike(np.array([1.0, -3.0, 4.0, 1e9, 0.0])).tolist() == [4.0, 4.0, 4.0, 1e9, 4.0]
    assert largest_alike(np.zeros(2)).tolist() == [0.0, 0.0]


@given(st.lists(FLOATS, min_size=1, max_size=30))
def test_the_largest_alike_is_one_of_the_values_and_not_smaller(values: list[float]) -> None:
    array = np.array(values)
    largest = largest_alike(array)
    assert set(largest.tolist()) <= {*np.abs(array).tolist()}
    assert bool((largest >= np.abs(array)).all())


def test_what_was_measured_often_enough_is_relied_on() -> None:
    noise = NoiseByOctave()
    for call in range(budgets.ENOUGH_MEASURED_CALLS):
        assert noise.least(np.array([1.5, 3.0])).tolist() == [0.0, 0.0]
        noise.measured(np.array([1.2, 1.5, 0.0]), np.array([3e-7, 1e-7 * (call + 1), 0.0]))
    assert noise.least(np.array([1.9, 3.0, 0.0])).tolist() == [1e-7, 1e-7, 0.0]


def test_of_smaller_numbers_it_falls_as_they_do() -> None:
    noise = NoiseByOctave()
    for _ in range(budgets.ENOUGH_MEASURED_CALLS):
        noise.measured(np.array([1.5]), np.array([1e-7]))
    assert noise.least(np.array([0.75, 0.375])).tolist() == [5e-8, 2.5e-8]


def test_noise_that_is_the_same_for_all_small_numbers_does_not_fall() -> None:
    noise = NoiseByOctave()
    for _ in range(budgets.ENOUGH_MEASURED_CALLS):
        noise.measured(np.array([1.5, 0.75, 0.2]), np.array([1e-7, 1e-7, 1e-7]))
    assert noise.least(np.array([1e-3, 0.4])).tolist() == pytest.approx([1e-7, 1e-7])


def test_what_is_typical_does_not_follow_one_call_that_rounds_less() -> None:
    noise = NoiseByOctave()
    for size in (1e-7, 1e-7, 1e-10, 2e-7):
        noise.measured(np.array([1.5]), np.array([size]))
    assert noise.least(np.array([1.2])).tolist() == [1e-10]
    assert noise.typical(np.array([1.2, 0.0])).tolist() == [1e-7, 0.0]


def test_a_few_of_many_below_a_gap_may_count_to_those_above() -> None:
    values = np.concatenate([np.linspace(1, 2, 200), [1e-3]])
    assert largest_alike(values)[-1] == 1e-3
    assert largest_alike(values, strays=True)[-1] == 2
    assert largest_alike(np.array([1e7, 0.1]), strays=True).tolist() == [1e7, 0.1]
    masked = np.concatenate([np.full(200, -1e9), [0.5]])
    assert largest_alike(masked, strays=True)[-1] == 0.5
