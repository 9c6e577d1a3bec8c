"""The walk through a graph: what is observed settles what rules and inference leave open."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from anyshape.errors import AnyshapeError
from anyshape.freeing.records import PinnedError
from anyshape.freeing.walk import broadcast, einsum_terms
from anyshape.sizes.expressions import dim_symbol, number

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


# ---- Axes as attributes or inputs, the letters of an Einsum, and shapes that broadcast


B, S = dim_symbol("batch"), dim_symbol("seq")


@pytest.mark.parametrize(
    ("shapes", "together"),
    [
        ([(B, number(3)), (number(1), number(3))], (B, number(3))),
        ([(number(4),), (B, number(1))], (B, number(4))),
        ([(number(5),), (B, S)], (B, S)),
        ([(), (number(2),)], (number(2),)),
        ([], ()),
    ],
)
def test_shapes_together(shapes, together):
    assert broadcast(shapes) == together


def einsum(equation, operands):
    return ir.node("Einsum", [ir.Value(name=f"i{k}") for k in range(operands)], {"equation": equation})


def test_the_letters_of_an_einsum():
    assert einsum_terms(einsum("b i, i j -> b j", 2)) == ["bi", "ij", "bj"]
    assert einsum_terms(einsum("bi,ij", 2)) is None  # the result is not written down
    assert einsum_terms(einsum("...i,ij->...j", 2)) is None
    assert einsum_terms(einsum("bi->b", 2)) is None
