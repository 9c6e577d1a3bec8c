"""Reshapes as regroupings of factors."""

import pytest

from anyshape.freeing.rules.reshape import readings
from anyshape.sizes.expressions import dim_symbol, number, product

B, S = dim_symbol("batch"), dim_symbol("seq")


def best(factors, target):
    return [str(product(axis)) for axis in readings(factors, target)[0]]


def n(*sizes):
    return [(number(size), size) for size in sizes]


@pytest.mark.parametrize(
    ("factors", "target", "expected"),
    [
        ([(B, 1), *n(8, 4, 4)], (1, 128), ["batch", "128"]),
        ([(B, 2), (S, 16), *n(32)], (32, 32), ["batch*seq", "32"]),
        ([(B, 1), (S, 16), *n(32)], (1, 16, 4, 8), ["batch", "seq", "4", "8"]),
        ([(S, 16), (B, 1), *n(32)], (16, 4, 8), ["seq", "4*batch", "8"]),
        ([(S, 16), (B, 1), *n(4, 8)], (16, 32), ["batch*seq", "32"]),
        ([(B, 3), *n(6, 2)], (3, 4, 3), ["batch", "4", "3"]),
        ([(B, 1), (S, 16)], (1, 1, 1, 16), ["batch", "1", "1", "seq"]),
    ],
)
def test_the_likeliest_reading_comes_first(factors, target, expected):
    assert best(factors, target) == expected


def test_the_order_of_factors_is_kept():
    ((merged,),) = readings([(B, 2), (S, 3)], (6,))
    assert merged == (B, S)


def test_a_merged_axis_is_split_where_it_was_merged():
    assert best([(B, 2), *n(4), (S, 16), *n(8)], (2, 4, 16, 8)) == ["batch", "4", "seq", "8"]


def test_a_dim_that_is_split_has_two_readings():
    found = [[str(product(axis)) for axis in reading] for reading in readings([(S, 16)], (4, 4))]
    assert found == [["seq/4", "4"], ["4", "seq/4"]]


def test_what_has_no_reading_has_none():
    assert readings([(B, 3), *n(4)], (5, 2)) == []
    assert readings([(B, 3), (S, 2)], (2, 3)) == []


def test_many_ones_do_not_take_for_ever():
    ones = [(dim_symbol(f"d{k}"), 1) for k in range(20)]
    assert len(readings(ones, (1,) * 60)) <= 100
