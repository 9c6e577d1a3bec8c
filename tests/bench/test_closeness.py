from __future__ import annotations

import numpy as np
import pytest

from anyshape.bench.closeness import difference, moved_by_rounding


def unmoved(expected):
    return lambda _: expected


def sentence(actual, expected, moved=None):
    return difference(actual, expected, moved or unmoved(expected))[1]


ONES = np.ones(4, np.float32)


def test_rounding_is_no_difference():
    assert sentence(ONES * np.float32(1 + 5e-6), ONES) is None


def test_more_than_rounding_is_one():
    assert sentence(ONES * np.float32(1.001), ONES) == "differs by 0.001 (allowed 1e-05)"


def test_what_moves_with_a_rounding_of_the_inputs_is_no_difference():
    assert sentence(ONES * np.float32(1.001), ONES, lambda _: ONES * np.float32(1.0005)) is None


def test_integers_must_be_equal_unless_a_rounding_decides_them():
    actual, expected = np.array([1, 2, 3]), np.array([1, 2, 4])
    assert sentence(actual, expected) == "differs in 1 of 3 places, first at [2]: 3, in the static file 4"
    assert sentence(actual, expected, lambda _: np.array([1, 2, 3])) is None


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
    assert sentence(actual, ONES) == said


def test_special_values_at_the_same_places_are_equal():
    values = np.array([np.nan, np.inf, -np.inf, 2], np.float32)
    assert sentence(values.copy(), values) is None


def test_floats_go_to_a_neighbour_and_integers_stay():
    feeds = {"x": np.ones(100, np.float32), "ids": np.arange(3)}
    moved = moved_by_rounding(feeds, 1)
    assert set(np.unique(moved["x"])) == {np.nextafter(np.float32(1), np.float32(s)) for s in (0, 2)}
    assert moved["ids"] is feeds["ids"]
