"""Every operator that is written in an older form gives the same in it, in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

from anyshape.conversion.graph.older_operators import OLDER
from anyshape.conversion.graph.opset import set_opset
from anyshape.runtime.releases import ir_version_for
from anyshape.runtime.session import Session

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
FLOATS = "float[a, b, 5] x"
AXES = "<int64[1] axes = {1}>"
# what the operator is called -> (the opset to write, inputs, initializers, body, the type of y)
CASES = {
    **{
        f"Reduce{kind}": (17, FLOATS, AXES, f"y = Reduce{kind}<keepdims=0>(x, axes)", "float[a, 5] y")
        for kind in ("Max", "Min", "Mean", "Prod", "L1", "L2", "LogSumExp", "SumSquare")
    },
    "ReduceLogSum": (17, FLOATS, AXES, "z = Abs(x) y = ReduceLogSum<keepdims=0>(z, axes)", "float[a, 5] y"),
    "ReduceSum": (11, FLOATS, AXES, "y = ReduceSum<keepdims=1, noop_with_empty_axes=0>(x, axes)", "float[a, 1, 5] y"),
    "ReduceMax of all": (11, FLOATS, "", "y = ReduceMax<keepdims=0>(x)", "float y"),
    "Squeeze": (11, FLOATS, "<int64[1] axes = {0}>", "z = Unsqueeze(x, axes) y = Squeeze(z, axes)", "float[a, b, 5] y"),
    "Split": (
        17, "float[a, 5, n] x", "", "y, z = Split<axis=1, num_outputs=2>(x)", "float[a, 3, n] y, float[a, 2, n] z",
    ),
    "Split into given parts": (
        11, FLOATS, "<int64[2] parts = {1, 4}>", "y, z = Split<axis=2>(x, parts)", "float[a, b, 1] y, float[a, b, 4] z",
    ),
    "Pad": (11, FLOATS, "<int64[2] pads = {1, 2}, float v = {7.0}, int64[1] axes = {-2}>",
            "y = Pad(x, pads, v, axes)", "float[a, c, 5] y"),
    "Resize": (11, "float[a, b, 5, c] x", "<float[4] scales = {1.0, 1.0, 2.0, 2.0}>",
               'y = Resize<mode="nearest", antialias=0, coordinate_transformation_mode="asymmetric", '
               'nearest_mode="floor">(x, "", scales)', "float[a, b, 10, d] y"),
    "Constant": (11, FLOATS, "", "c = Constant<value_floats=[2.0]>() y = Mul(x, c)", "float[a, b, 5] y"),
    "Reshape": (13, FLOATS, "<int64[2] shape = {-1, 5}>", "y = Reshape<allowzero=1>(x, shape)", "float[d, 5] y"),
    "CastLike": (11, f"{FLOATS}", "<int64[1] l = {1}>", "y = CastLike(x, l)", "int64[a, b, 5] y"),
    "Shape": (11, FLOATS, "", "y = Shape<start=-2, end=-1>(x)", "int64[1] y"),
    "Shape of all": (11, FLOATS, "", "y = Shape<start=0>(x)", "int64[3] y"),
    "LayerNormalization": (11, FLOATS, "<float[5] w = {1.0, 2.0, 3.0, 4.0, 5.0}, float[5] b = {0.5, 1.0, 0.0, 0.0, 2}>",
                           "y = LayerNormalization<axis=-1, epsilon=0.01>(x, w, b)", "float[a, b, 5] y"),
    "LayerNormalization of two axes": (
        11, "float[a, 4, 5] x", "<float[1] w = {2.0}>", "y = LayerNormalization<axis=1>(x, w)", "float[a, 4, 5] y",
    ),
    "Softmax": (11, FLOATS, "", "y = Softmax<axis=1>(x)", "float[a, b, 5] y"),
    "Softmax by default": (11, FLOATS, "", "y = Softmax(x)", "float[a, b, 5] y"),
    "LogSoftmax": (11, FLOATS, "", "y = LogSoftmax<axis=0>(x)", "float[a, b, 5] y"),
    "Trilu": (11, FLOATS, "<int64 k = {1}>", "y = Trilu<upper=0>(x, k)", "float[a, b, 5] y"),
    "Trilu above": (13, FLOATS, "", "y = Trilu(x)", "float[a, b, 5] y"),
    "Trilu of flags": (11, FLOATS, "", "z = Greater(x, x) n = Not(z) y = Trilu<upper=1>(n)", "bool[a, b, 5] y"),
    "GreaterOrEqual": (11, FLOATS, "<float n = {nan}, float o = {0.0}>",
                       "r = Sqrt(x) y = GreaterOrEqual(r, o)", "bool[a, b, 5] y"),
    "LessOrEqual": (11, FLOATS, "<float o = {0.0}>", "r = Sqrt(x) y = LessOrEqual(r, o)", "bool[a, b, 5] y"),
    "HardSwish": (11, FLOATS, "", "y = HardSwish(x)", "float[a, b, 5] y"),
    "Mish": (11, FLOATS, "", "y = Mish(x)", "float[a, b, 5] y"),
    "Celu": (11, FLOATS, "", "y = Celu<alpha=0.7>(x)", "float[a, b, 5] y"),
    "Max": (11, FLOATS, "<int64[1] t = {4}>", "s = Shape(x) y = Max(s, t)", "int64[3] y"),
    "Min": (11, FLOATS, "<int64[1] t = {4}>", "s = Shape(x) y = Min(s, t)", "int64[3] y"),
}  # fmt: skip


def model_of(inputs: str, weights: str, body: str, outputs: str, opset: int = 18) -> ir.Model:
    head = f'<ir_version: {ir_version_for(opset)}, opset_import: ["": {opset}]>'
    text = f"{head} g ({inputs}) => ({outputs}) {weights} {{ {body} }}".replace("float n = {nan}, ", "")
    return ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text), strict_mode=True))


def results(model: ir.Model) -> list[np.ndarray]:
    shape = tuple(model.graph.inputs[0].shape or ())
    x = X if len(shape) == 3 else X[..., None]
    x = x.transpose(0, 2, 1) if shape[1:2] == (5,) else x
    return Session(ir.to_proto(model).SerializeToString()).run({"x": x})


@pytest.mark.parametrize("name", CASES)
def test_the_older_form_gives_the_same(name: str) -> None:
    opset, *text = CASES[name]
    model = model_of(*text)
    expected = results(model)
    set_opset(model, opset)
    model.ir_version = ir_version_for(opset)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    assert model.opset_imports[""] == opset
    for found, wanted in zip(results(model), expected, strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_modes_of_images_have_their_older_names() -> None:
    text = ("float[a, 2, h, w] x, float[a, 3, 3, 2] g", "", 'y = GridSample<mode="cubic">(x, g)', "float[a, 2, 3, 3] y")
    model = model_of(*text, opset=20)
    set_opset(model, 17)
    (node,) = model.graph
    assert node.attributes["mode"].value == "bicubic"


def test_each_has_a_case() -> None:
    tried = {name.partition(" ")[0] for name in CASES} | {"GridSample", "Unsqueeze"}
    assert set(OLDER) - tried == set()
