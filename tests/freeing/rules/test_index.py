"""Indices into an axis that is free."""

import numpy as np
import pytest

from anyshape.freeing.records import PinnedError
from tests.freeing.files import assert_right_sample_by_sample, floats, freed, ints, model, run


def test_the_last_entry_stays_the_last():
    static = model("g (float[2, 6, 4] x) => (float[2, 4] y) { y = Gather<axis = 1>(x, i) }", i=np.array(5))
    result = freed(static, x="batch seq _")
    x = floats(3, 9, 4)
    np.testing.assert_array_equal(run(result.model, x)[0], x[:, -1])


def test_a_flip_turns_the_whole_axis():
    static = model("g (float[2, 6] x) => (float[2, 6] y) { y = Gather<axis = 1>(x, i) }", i=np.arange(6)[::-1].copy())
    result = freed(static, x="_ seq")
    x = floats(2, 9)
    np.testing.assert_array_equal(run(result.model, x)[0], x[:, ::-1])


def test_indices_through_merged_axes_run_through_both():
    text = "g (float[2, 3] x) => (float[2, 1, 3] y) { f = Flatten<axis = 0>(x) r = Reshape(f, m) y = Gather(r, i) }"
    static = model(text, m=ints(-1), i=np.arange(6).reshape(2, 1, 3))
    result = freed(static, x="batch seq")
    assert result.outputs == (("batch", "1", "seq"),)
    x = floats(5, 4)
    np.testing.assert_array_equal(run(result.model, x)[0], x[:, None])


def test_steps_that_are_written_out_pin_their_axis():
    text = """g (float[2, 2, 4] x) => (float[2, 4] y) {
        a = Gather<axis = 1>(x, i) b = Gather<axis = 1>(x, j) y = Add(a, b) }"""
    with pytest.raises(PinnedError, match="step by step"):
        freed(model(text, i=np.array(0), j=np.array(1)), x="_ seq _")


def test_a_grid_of_positions_follows_the_batch():
    index = np.stack(np.meshgrid(np.arange(2), [3, 1], indexing="ij"), -1)
    static = model("g (float[2, 5] x) => (float[2, 2] y) { y = GatherND(x, i) }", i=index)
    assert_right_sample_by_sample(static, freed(static, x="batch _").model)


def test_a_sort_takes_all():
    static = model("g (float[2, 6] x) => (float[2, 6] y) { y, z = TopK(x, k) }", k=ints(6))
    x = floats(2, 9)
    np.testing.assert_array_equal(run(freed(static, x="_ seq").model, x)[0], -np.sort(-x))
