"""What is fed to a file, and the values of its constants."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

from anyshape.errors import AnyshapeError
from anyshape.freeing.inference import Evaluator
from anyshape.freeing.observation import feeds, guesses, observe, prepared

from .files import floats, model


def test_shapes_of_all_tensors_come_from_one_run():
    static = model("g (float[2, 4] x) => (float[4, 2] y) { a = Relu(x) y = Transpose(a) }")
    assert observe(static, {"x": (2, 4)}, None) == {"x": (2, 4), "a": (2, 4), "y": (4, 2)}


def test_indices_stay_below_their_table_and_masks_are_ones():
    text = "g (int64[2, 50] ids, int64[2, 50] mask) => (float[2, 50, 3] y) { c = Cast<to = 7>(ids) y = Gather(t, c) }"
    given = feeds(model(text, t=floats(5, 3)).graph, {"ids": (2, 50), "mask": (2, 50)})
    assert (given["ids"].min(), given["ids"].max(), given["mask"].all()) == (0, 4, True)


def test_open_axes_are_tried_with_different_sizes_first():
    first, second, *_ = guesses(["a", "b"])
    assert (first, second) == ({"a": 3, "b": 5}, {"a": 1, "b": 1})


def test_values_are_computed_from_constants_alone():
    text = "g (float[2, 4] x) => (float[2, 4] y) { r = Range(z, n, o) s = Add(r, r) t = Shape(x) y = Add(x, x) }"
    static = model(text, z=np.array(0), n=np.array(3), o=np.array(1))
    values = {value.name: value for node in static.graph for value in node.outputs}
    evaluator = Evaluator(static)
    assert evaluator.value(values["s"]).tolist() == [0, 2, 4]
    assert evaluator.value(values["y"]) is None
    assert evaluator.value(values["t"]) is None
    assert Evaluator(static, {"x": (2, 4)}).value(values["t"]).tolist() == [2, 4]


# ---- A model that may be changed: functions inlined, constants lifted, shapes forgotten, and unsound ones


FUNCTION = """<ir_version: 10, opset_import: ["": 18, "own": 1]>
g (float[2] x) => (float[2] y) { y = own.twice(x) }
<domain: "own", opset_import: ["": 18]> twice (a) => (b) { c = Constant<value = float[1] {2}>() b = Mul(a, c) }"""


def test_functions_are_inlined_and_constants_lifted():
    made = prepared(ir.from_proto(onnx.parser.parse_model(FUNCTION)))
    assert [node.op_type for node in made.graph] == ["Mul"]
    (constant,) = made.graph.initializers.values()
    assert constant.const_value.numpy().tolist() == [2]


def test_the_clone_shares_weights_and_forgets_shapes():
    static = model("g (float[2, 3] x) => (float[2, 3] y) { a = Add(x, w) y = Relu(a) }", w=np.ones(3, np.float32))
    made = prepared(static)
    assert made.graph.initializers["w"].const_value is static.graph.initializers["w"].const_value
    assert made.graph is not static.graph
    assert all(value.shape is None for node in made.graph for value in node.outputs)
    assert static.graph.outputs[0].shape == ir.Shape([2, 3])


def test_two_values_of_one_name_cannot_be_told_apart():
    static = model("g (float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }")
    next(iter(static.graph)).outputs[0].name = "x"
    with pytest.raises(AnyshapeError, match="two values of the file are called `x`"):
        prepared(static)


def test_a_file_without_an_opset_is_refused():
    static = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    static.opset_imports.clear()
    with pytest.raises(AnyshapeError, match="names no opset of ONNX"):
        prepared(static)
