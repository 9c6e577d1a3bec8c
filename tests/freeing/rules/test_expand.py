"""Tensors of a size that is written down, at sizes that the file was not made for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.freeing.files import assert_right_sample_by_sample, floats, freed, ints, model, run


def test_an_expand_of_data_keeps_its_size():
    static = model("g (float[2, 1, 4] x) => (float[2, 3, 4] y) { y = Expand(x, s) }", s=ints(2, 3, 4))
    assert_right_sample_by_sample(static, freed(static, x="batch _ _").model)


def test_a_class_token_follows_the_batch():
    text = "g (float[2, 3, 4] x) => (float[2, 4, 4] y) { t = Expand(c, s) y = Concat<axis = 1>(t, x) }"
    static = model(text, c=floats(1, 1, 4), s=ints(2, 1, 4))
    result = freed(static, x="batch seq _")
    assert result.outputs == (("batch", "seq + 1", "4"),)
    assert_right_sample_by_sample(static, result.model)
    assert run(result.model, floats(3, 9, 4))[0].shape == (3, 10, 4)


# ---- Resizes to sizes that are written down


@pytest.mark.parametrize("sizes", [(2, 3, 8, 8), (2, 3, 4, 2)])
def test_a_resize_follows_its_input(sizes):
    static = model('g (float[2, 3, 4, 4] x) => (float[a, b, c, d] y) { y = Resize(x, "", "", s) }', s=ints(*sizes))
    result = freed(static, x="batch _ height width")
    y = run(result.model, floats(1, 3, 6, 10))[0]
    assert y.shape == (1, 3, 6 * sizes[2] // 4, 10 * sizes[3] // 4)


def test_a_resize_beside_the_picture_takes_the_size_of_the_picture():
    text = """g (float[1, 3, 8, 8] x) => (float[1, 3, 8, 8] y) {
        p = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(x) u = Resize(p, "", "", s) y = Add(x, u) }"""
    result = freed(model(text, s=ints(1, 3, 8, 8)), x="batch _ height width")
    assert result.outputs == (("batch", "3", "height", "width"),)
    assert run(result.model, floats(2, 3, 7, 5))[0].shape == (2, 3, 7, 5)


def test_sizes_that_meet_only_at_multiples_are_a_limit_and_no_refusal():
    text = """g (float[1, 3, 8] x) => (float[1, 3, 8] y) {
        p = AveragePool<kernel_shape = [2], strides = [2]>(x) u = Resize(p, "", f) y = Add(x, u) }"""
    result = freed(model(text, f=np.array([1, 1, 2], np.float32)), x="batch _ seq")
    assert run(result.model, floats(2, 3, 12))[0].shape == (2, 3, 12)
