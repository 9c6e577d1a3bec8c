"""Graphs inside of nodes: branches, loops, scans, and functions of the model's own."""

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

from anyshape.freeing.records import PinnedError
from tests.freeing.files import assert_right_sample_by_sample, floats, freed, model, run

BRANCHES = """g (float[2, 4] x) => (float[2, 2, 2] y) {
    s = ReduceSum<keepdims = 0>(x) p = Greater(s, zero)
    y = If (p) <then_branch = a () => (float[2, 2, 2] t) { t = Reshape(x, shape) },
                else_branch = b () => (float[2, 2, 2] e) { n = Neg(x) e = Reshape(n, shape) }>
}"""


def test_both_branches_are_freed():
    static = model(BRANCHES, zero=np.float32(0), shape=np.array([2, 2, 2]))
    result = freed(static, x="batch _")
    assert result.outputs == (("batch", "2", "2"),)
    x = np.abs(floats(5, 4))
    np.testing.assert_array_equal(run(result.model, x)[0], x.reshape(5, 2, 2))
    np.testing.assert_array_equal(run(result.model, -x)[0], x.reshape(5, 2, 2))


def test_what_pins_inside_of_a_branch_is_named():
    text = BRANCHES.replace("t = Reshape(x, shape)", "v = MatMul(x, w) t = Reshape(v, shape)")
    with pytest.raises(PinnedError, match="MatMul node `v` pins `seq`: it sums over `seq` with `w`"):
        freed(model(text, zero=np.float32(0), shape=np.array([2, 2, 2]), w=floats(4, 4)), x="batch seq")


LOOP = """g (float[2, 5, 3] x) => (float[2, 3] y, float[n, a, b] all) {
    y, all = Loop (times, always, start) <body = one (int64 i, bool go, float[2, 3] h) =>
        (bool on, float[2, 3] k, float[2, 3] out) {
            on = Identity(go) v = Gather<axis = 1>(x, i) k = Add(h, v) out = Identity(k) }>
}"""


def running_sum(x):
    return np.cumsum(x, 1).transpose(1, 0, 2)


def loop():
    return model(LOOP, times=np.array(5), always=np.array(True), start=np.zeros((2, 3), np.float32))


def test_the_state_of_a_loop_follows_the_batch_and_its_rounds_the_sequence():
    result = freed(loop(), x="batch seq _")
    assert result.outputs == (("batch", "3"), ("seq", "batch", "3"))
    x = floats(4, 9, 3)
    last, every = run(result.model, x)
    np.testing.assert_allclose(last, x.sum(1), rtol=1e-5)
    np.testing.assert_allclose(every, running_sum(x), rtol=1e-4, atol=1e-5)


def test_rounds_may_also_stay_a_number():
    result = freed(loop(), (1,), x="batch seq _")
    x = floats(4, 9, 3)
    np.testing.assert_allclose(run(result.model, x)[0], x[:, :5].sum(1), rtol=1e-4, atol=1e-5)


def test_a_scan_is_as_long_as_what_it_goes_through():
    text = """g (float[5, 2, 3] x) => (float[2, 3] y, float[n, a, b] all) {
        y, all = Scan <num_scan_inputs = 1, body = one (float[2, 3] h, float[2, 3] v) =>
            (float[2, 3] k, float[2, 3] out) { k = Add(h, v) out = Identity(k) }> (start, x)
    }"""
    result = freed(model(text, start=np.zeros((2, 3), np.float32)), x="seq batch _")
    assert result.outputs == (("batch", "3"), ("seq", "batch", "3"))
    x = floats(9, 4, 3)
    np.testing.assert_allclose(run(result.model, x)[1], np.cumsum(x, 0), rtol=1e-4, atol=1e-5)


def test_functions_of_the_model_are_freed():
    text = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    g (float[2, 4] x) => (float[2, 2, 2] y) { y = own.Fold(x) }
    <domain: "own", opset_import: ["" : 18]>
    Fold (x) => (y) { s = Constant<value_ints = [2, 2, 2]>() y = Reshape(x, s) }"""
    static = ir.serde.deserialize_model(onnx.parser.parse_model(text))
    assert_right_sample_by_sample(static, freed(static, x="batch _").model)
