"""A converter's model becomes ours: names, dims, every input present, and no trace of the machine."""

from __future__ import annotations

import onnx
import onnx.parser
import onnx_ir as ir

from anyshape.conversion.graph.finish import add_metadata, finish, set_output_axes
from anyshape.onnxfile.graph import graphs_in
from anyshape.onnxfile.metadata import SCOPE_KEY, SOURCE_KEY
from anyshape.sizes.notation import parse_expression

TEXT = """<ir_version: 10, opset_import: ["": 18]>
g (float[s0, 3] input_0, float[s1] input_2) => (float[s0, 3] out, float[s1] input_2)
<float[3] "model.layer.weight" = {1, 2, 3}> { y = Mul(input_0, "model.layer.weight") out = Relu(y) }"""
STACK = 'File "/home/somebody/net.py", line 31, in forward\n    return x * self.weight'
FLOAT = ir.DataType.FLOAT
INPUTS = [("y", ["batch", 3], FLOAT), ("unused", [None], FLOAT), ("z", [parse_expression("2 * n")], FLOAT)]


def finished() -> ir.Model:
    text = TEXT.replace('"model.layer.weight"', "weight")
    model = ir.from_proto(onnx.parser.parse_model(text))
    model.graph.initializers["weight"].name = "model.layer.weight"
    next(iter(model.graph)).metadata_props["pkg.torch.onnx.stack_trace"] = STACK
    next(iter(model.graph)).metadata_props["pkg.torch.onnx.name_scopes"] = "['', 'model', 'model.layer.0', 'mm']"
    model.metadata_props["pkg"] = "secret"
    return finish(model, 18, INPUTS, ["first", "second"])


def test_inputs_and_outputs_have_the_user_s_names_and_order() -> None:
    graph = finished().graph
    assert [value.name for value in graph.inputs] == ["y", "unused", "z"]
    assert [value.name for value in graph.outputs] == ["first", "second"]
    assert graph.inputs[0].shape == ir.Shape(["batch", 3])
    assert graph.inputs[2].shape == ir.Shape(["2 * n"])
    assert graph.outputs[1] is not graph.inputs[2]


def test_inner_values_give_way_and_weights_are_the_module_s_own() -> None:
    graph = finished().graph
    assert [value.name for node in graph for value in node.outputs] == ["y_", "first", "second"]
    assert list(graph.initializers) == ["layer.weight"]


LOOP = """<ir_version: 10, opset_import: ["": 18]>
g (float[2, 3] x, float[3] b) => (float[3] out) {
  last, all = Scan <num_scan_inputs = 1, body = step (float[3] b_, float[3] row) => (float[3] n, float[3] m) {
    late = Add(b_, row) n = Relu(late) m = Neg(late) }> (b, x)
  late = Neg(last) out = Relu(late) }"""


def test_values_of_a_body_give_way_to_all_around_it() -> None:
    model = ir.from_proto(onnx.parser.parse_model(LOOP))
    finish(model, 18, [("x", [2, 3], FLOAT), ("n", [3], FLOAT)], ["out"])
    (body,) = (one for node in model.graph for one in graphs_in(node))
    assert [value.name for value in body.inputs] == ["b_", "row"]
    assert [value.name for node in body for value in node.outputs] == ["late_", "n_", "m"]


def test_of_a_stack_the_line_and_the_module_are_left_and_nothing_else() -> None:
    model = finished()
    notes = [dict(node.metadata_props) for node in model.graph]
    assert notes == [{SOURCE_KEY: "net.py:31 in forward", SCOPE_KEY: "layer.0"}, {}, {}]
    text = str(ir.to_proto(model))
    assert not any(word in text for word in ("/home", "secret", "s0", "input_0"))


def test_outputs_get_their_axes_when_runs_have_shown_them() -> None:
    model = finished()
    set_output_axes(model, [["batch", 3], None])
    assert model.graph.outputs[0].shape == ir.Shape(["batch", 3])
    assert model.graph.outputs[1].shape is None
    add_metadata(model, {"key": "value"})
    assert model.metadata_props == {"key": "value"}
