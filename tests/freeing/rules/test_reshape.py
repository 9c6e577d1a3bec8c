"""Reshapes as regroupings of factors, and the nodes that move axes at sizes that the file was not made for."""

import numpy as np
import pytest

from anyshape.freeing.records import PinnedError
from anyshape.freeing.rules.reshape import readings
from anyshape.sizes.expressions import dim_symbol, number, product
from tests.freeing.files import assert_right_sample_by_sample, freed, ints, model, whats

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


# ---- in a file


def test_a_reshape_keeps_the_batch():
    static = model("g (float[2, 3, 4] x) => (float[2, 12] y) { y = Reshape(x, s) }", s=ints(2, 12))
    result = freed(static, x="batch _ _")
    assert result.outputs == (("batch", "12"),)
    assert whats(result) == {"Reshape": "target [2, 12] became [0, 12]"}
    assert_right_sample_by_sample(static, result.model)


def test_heads_are_split_from_a_batch_on_axis_1():
    text = """g (float[5, 1, 8] x) => (float[5, 1, 8] y) {
        h = Reshape(x, s) t = Transpose<perm = [1, 0, 2]>(h) u = Softmax<axis = 1>(t)
        v = Transpose<perm = [1, 0, 2]>(u) y = Reshape(v, r) }"""
    static = model(text, s=ints(5, 2, 4), r=ints(5, 1, 8))
    result = freed(static, x="_ batch _")
    assert_right_sample_by_sample(static, result.model, axis=1)


def test_a_transpose_that_was_written_as_a_reshape_is_one_of_the_readings():
    text = """g (float[1, 5, 3] x) => (float[1, 5, 3] y) {
        t = Reshape(x, s) c = CumSum(t, zero) y = Reshape(c, r) }"""
    static = model(text, s=ints(5, 1, 3), r=ints(1, 5, 3), zero=np.array(0))
    result = freed(static, (1, 1), x="batch _ _")
    assert whats(result)["Reshape"].startswith(("axes were moved", "target"))
    assert_right_sample_by_sample(static, result.model)


def test_a_target_that_the_file_computes_is_left_alone():
    text = """g (float[2, 3, 4] x) => (float[2, 12] y) {
        a = Shape<start = 0, end = 1>(x) s = Concat<axis = 0>(a, m) y = Reshape(x, s) }"""
    static = model(text, m=ints(-1))
    result = freed(static, x="batch _ _")
    assert result.rewrites == ()
    assert_right_sample_by_sample(static, result.model)


def test_a_squeeze_of_the_batch_pins_it():
    static = model("g (float[1, 4] x) => (float[4] y) { y = Squeeze(x, a) }", a=ints(0))
    with pytest.raises(PinnedError, match="Squeeze node `y` pins `batch`: it drops axis 0") as caught:
        freed(static, x="batch _")
    assert (caught.value.node, caught.value.operator, caught.value.dim) == ("y", "Squeeze", "batch")
