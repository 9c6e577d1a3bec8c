"""A model that may be changed: functions inlined, constants lifted, shapes forgotten, and unsound ones refused."""

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

from anyshape.errors import AnyshapeError
from anyshape.freeing.preparation import prepared

from .files import model

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
