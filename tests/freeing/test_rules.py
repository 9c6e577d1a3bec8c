"""Each operator that can pin a size, in a file of its own, at sizes that the file was not made for."""

import numpy as np
import pytest

from anyshape.freeing.records import PinnedError

from .files import assert_right_sample_by_sample, floats, freed, model, run, whats


def ints(*numbers):
    return np.array(numbers, np.int64)


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


@pytest.mark.parametrize("sizes", [(2, 3, 8, 8), (2, 3, 4, 2)])
def test_a_resize_follows_its_input(sizes):
    static = model('g (float[2, 3, 4, 4] x) => (float[a, b, c, d] y) { y = Resize(x, "", "", s) }', s=ints(*sizes))
    result = freed(static, x="batch _ height width")
    y = run(result.model, floats(1, 3, 6, 10))[0]
    assert y.shape == (1, 3, 6 * sizes[2] // 4, 10 * sizes[3] // 4)


def test_states_and_lengths_of_an_lstm_follow():
    text = """g (float[6, 2, 3] x) => (float[6, 1, 2, 4] y) {
        y, h, c = LSTM<hidden_size = 4>(x, w, r, b, l, z, z) }"""
    weights = {"w": floats(1, 16, 3), "r": floats(1, 16, 4), "b": floats(1, 32), "z": np.zeros((1, 2, 4), np.float32)}
    static = model(text, l=np.array([6, 6], np.int32), **weights)
    result = freed(static, x="seq batch _")
    assert result.outputs == (("seq", "1", "batch", "4"),)
    x = floats(6, 10, 3)
    parts = [run(static, part)[0] for part in np.split(x, 5, 1)]
    np.testing.assert_allclose(run(result.model, x)[0], np.concatenate(parts, 2), atol=1e-5)
    np.testing.assert_allclose(run(result.model, x[:4])[0], run(result.model, x)[0][:4], atol=1e-5)


def test_a_mean_divides_by_the_size():
    text = "g (float[2, 4, 3] x) => (float[2, 3] y) { s = ReduceSum<keepdims = 0>(x, a) y = Div(s, n) }"
    result = freed(model(text, a=ints(1), n=np.float32(4)), x="batch seq _")
    x = floats(3, 7, 3)
    np.testing.assert_allclose(run(result.model, x)[0], x.mean(1), rtol=1e-5)


def test_a_variance_divides_by_one_less():
    text = """g (float[2, 4] x) => (float[2, 1] y) {
        m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) s = ReduceMean(q, a) t = Mul(s, n) y = Div(t, k) }"""
    result = freed(model(text, a=ints(1), n=np.float32(4), k=np.float32(3)), x="batch seq")
    x = floats(3, 7)
    np.testing.assert_allclose(run(result.model, x)[0], x.var(1, ddof=1, keepdims=True), rtol=1e-5)


def test_a_number_that_happens_to_be_a_size_is_a_choice():
    static = model("g (float[2, 5] x) => (float[2, 5] y) { y = Mul(x, n) }", n=np.float32(5))
    kept, followed = freed(static, x="_ seq"), freed(static, (1,), x="_ seq")
    assert "is kept, though `seq` was 5" in whats(kept)["Mul"]
    x = floats(2, 8)
    np.testing.assert_allclose(run(kept.model, x)[0], x * 5)
    np.testing.assert_allclose(run(followed.model, x)[0], x * 8)


def test_weights_along_an_axis_pin_it():
    with pytest.raises(PinnedError, match="sums over `seq` with `w`, which has 4 on axis 0"):
        freed(model("g (float[2, 4] x) => (float[2, 3] y) { y = MatMul(x, w) }", w=floats(4, 3)), x="batch seq")
    with pytest.raises(PinnedError, match="channels of the weights `w`"):
        freed(model("g (float[2, 4, 5] x) => (float[a, b, c] y) { y = Conv(x, w) }", w=floats(3, 4, 1)), x="_ seq _")


def test_a_tensor_that_stays_fixed_pins_the_other():
    static = model("g (float[2, 4] x, float[2, 4] m) => (float[2, 4] y) { y = Add(x, m) }")
    with pytest.raises(PinnedError, match="the input `m` has 4 on axis 1 for `seq`"):
        freed(static, x="_ seq", m="_ _")


def test_axes_that_depend_on_the_data_stay_unknown():
    text = "g (float[2, 3] x) => (int64[n, 2] y) { n = NonZero(x) t = Transpose(n) y = Reshape(t, s) }"
    result = freed(model(text, s=ints(-1, 2)), x="batch _")
    assert result.outputs == ((None, "2"),)
    assert len(run(result.model, floats(5, 3))[0]) == 15


def test_two_inputs_that_were_joined_along_the_batch_come_apart_again():
    text = """g (float[1, 3] x, float[1, 3] z) => (float[1, 3] y) {
        c = Concat<axis = 0>(x, z) r = Relu(c) a, b = Split<axis = 0>(r, s) y = Sub(a, b) }"""
    static = model(text, s=ints(1, 1))
    assert_right_sample_by_sample(static, freed(static, x="batch _", z="batch _").model)


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
