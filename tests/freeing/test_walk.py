"""The walk through a graph: what is observed settles what rules and inference leave open."""

import numpy as np
import pytest

from anyshape.errors import AnyshapeError
from anyshape.freeing.records import PinnedError

from .files import floats, freed, ints, model, run


def test_axes_that_depend_on_the_data_stay_unknown():
    text = "g (float[2, 3] x) => (int64[n, 2] y) { n = NonZero(x) t = Transpose(n) y = Reshape(t, s) }"
    result = freed(model(text, s=ints(-1, 2)), x="batch _")
    assert result.outputs == ((None, "2"),)
    assert len(run(result.model, floats(5, 3))[0]) == 15


def test_an_operator_that_the_runtime_does_not_know_is_refused():
    static = model("g (float[2, 4] x) => (float[2] y) { y = com.microsoft.Unknown(x) }")
    with pytest.raises(AnyshapeError, match="ONNX Runtime cannot run the file"):
        freed(static, x="batch _")


def test_an_operator_without_inference_is_like_an_input_of_its_shape():
    static = model("g (float[2, 4] x) => (float[2, 4] y) { z = com.microsoft.QuickGelu(x) y = Relu(z) }")
    result = freed(static, x="batch seq")
    assert result.outputs == (("batch", "seq"),)
    assert run(result.model, floats(3, 5))[0].shape == (3, 5)


def test_factors_come_through_what_broadcasts_and_a_fixed_input_is_met_where_it_is_used():
    text = """g (float[2, 3] x, float[4] t) => (float[2, 12] y) {
        a = Reshape(x, s) b = Unsqueeze(t, o) c = Mul(a, b) y = Reshape(c, r) }"""
    static = model(text, s=ints(6, 1), o=ints(0), r=ints(2, 12))
    result = freed(static, x="batch _", t="_")
    x, t = floats(5, 3), floats(4)
    np.testing.assert_allclose(run(result.model, x, t)[0], (x.reshape(15, 1) * t).reshape(5, 12))
    with pytest.raises(PinnedError, match="`z` has"):
        freed(model("g (float[2, 3] x, float[2, 3] z) => (float[2, 3] y) { y = Add(x, z) }"), x="batch _", z="_ _")
