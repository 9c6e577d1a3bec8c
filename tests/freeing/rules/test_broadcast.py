"""Operators that broadcast, and sizes that are used as values."""

import numpy as np
import pytest

from anyshape.freeing.records import PinnedError
from tests.freeing.files import floats, freed, ints, model, run, whats


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


def test_a_tensor_that_stays_fixed_pins_the_other():
    static = model("g (float[2, 4] x, float[2, 4] m) => (float[2, 4] y) { y = Add(x, m) }")
    with pytest.raises(PinnedError, match="the input `m` has 4 on axis 1 for `seq`"):
        freed(static, x="_ seq", m="_ _")
