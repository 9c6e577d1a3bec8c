"""Slices and splits of an axis that is free."""

import numpy as np
import pytest

from anyshape.freeing.records import PinnedError
from tests.freeing.files import assert_right_sample_by_sample, floats, freed, ints, model, run


def test_a_slice_to_the_end_goes_to_the_end():
    static = model("g (float[2, 6] x) => (float[2, 4] y) { y = Slice(x, a, b, c) }", a=ints(2), b=ints(6), c=ints(1))
    result = freed(static, x="batch seq")
    assert result.outputs == (("batch", "seq - 2"),)
    x = floats(3, 11)
    np.testing.assert_array_equal(run(result.model, x)[0], x[:, 2:])


def test_a_slice_near_the_end_counts_from_there():
    static = model("g (float[2, 6] x) => (float[2, 5] y) { y = Slice(x, a, b, c) }", a=ints(0), b=ints(5), c=ints(1))
    result, other = freed(static, x="_ seq"), freed(static, (1,), x="_ seq")
    assert (result.outputs, other.outputs) == ((("2", "seq - 1"),), (("2", "5"),))
    assert result.choices == (2,)
    x = floats(2, 9)
    np.testing.assert_array_equal(run(result.model, x)[0], x[:, :-1])
    np.testing.assert_array_equal(run(other.model, x)[0], x[:, :5])


def test_a_split_leaves_the_rest_to_the_longest_part():
    text = "g (float[2, 6] x) => (float[2, 1] y, float[2, 5] z) { y, z = Split<axis = 1>(x, s) }"
    result = freed(model(text, s=ints(1, 5)), x="_ seq")
    x = floats(2, 9)
    np.testing.assert_array_equal(run(result.model, x)[1], x[:, 1:])


@pytest.mark.parametrize("parts", ["split = [3, 3]", "split = [1, 5]"])
@pytest.mark.parametrize("opset", [11, 12])
def test_a_split_of_an_older_opset_follows_its_axis(opset, parts):
    text = f"g (float[2, 6] x) => (float[2, 6] y) {{ a, b = Split<axis = 1, {parts}>(x) y = Concat<axis = 1>(b, a) }}"
    result = freed(model(text, opset), x="_ seq")
    x = floats(2, 10)
    first = 1 if "1" in parts else 5
    np.testing.assert_array_equal(run(result.model, x)[0], np.concatenate([x[:, first:], x[:, :first]], 1))


def test_a_split_of_an_older_opset_whose_parts_are_outputs_is_refused():
    text = "g (float[2, 6] x) => (float[2, 1] y, float[2, 5] z) { y, z = Split<axis = 1, split = [1, 5]>(x) }"
    with pytest.raises(PinnedError, match="its parts are an attribute"):
        freed(model(text, 11), x="_ seq")


def test_two_inputs_that_were_joined_along_the_batch_come_apart_again():
    text = """g (float[1, 3] x, float[1, 3] z) => (float[1, 3] y) {
        c = Concat<axis = 0>(x, z) r = Relu(c) a, b = Split<axis = 0>(r, s) y = Sub(a, b) }"""
    static = model(text, s=ints(1, 1))
    assert_right_sample_by_sample(static, freed(static, x="batch _", z="batch _").model)
