from __future__ import annotations

import onnx.parser
import onnx_ir as ir
import pytest

import anyshape
from anyshape.freeing.names_alone import named, with_outputs

HEAD = '<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 3]>\n'
LINEAR = """
main (float[2, 3] x) => (int64[2] label, float[2, 2] scores) {
  label, scores = ai.onnx.ml.LinearClassifier<coefficients = [1.0, 2.0, 3.0, -1.0, 0.5, 2.0], intercepts = [0.1, 0.2],
    classlabels_ints = [0, 1], multi_class = 0, post_transform = "NONE">(x)
}"""


def freed(shapes_at):
    model = ir.from_proto(onnx.parser.parse_model(HEAD + LINEAR))
    return with_outputs(named(model, {"x": ("batch", None)}, {"batch": 2}), shapes_at)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (lambda n: n, "batch"),
        (lambda n: 4 * n, "4*batch"),
        (lambda n: n + 1, "batch + 1"),
        (lambda n: 2 * n - 1, "2*batch - 1"),
        (lambda n: 7, "7"),
        (lambda n: n * n, None),
    ],
)
def test_an_axis_is_labelled_by_what_runs_show(size, said):
    made = freed(lambda sizes: [(size(sizes["batch"]),), (size(sizes["batch"]), 2)])
    assert made.outputs == ((said,), (said, "2"))


def test_operators_that_nobody_knows_are_freed_where_nothing_pins_them(tmp_path):
    onnx.save(onnx.parser.parse_model(HEAD + LINEAR), tmp_path / "static.onnx")
    result = anyshape.make_dynamic(tmp_path / "static.onnx", {"x": "batch 3"})
    assert [port.axes for port in result.outputs] == [("batch",), ("batch", 2)]
    assert result.verification.how == {"batch": "1 to 5 (5 sizes), sample by sample"}


def test_the_file_itself_is_left_as_it_is():
    model = ir.from_proto(onnx.parser.parse_model(HEAD + LINEAR))
    named(model, {"x": ("batch", None)}, {"batch": 2})
    assert list(model.graph.inputs[0].shape) == [2, 3]
    assert list(model.graph.outputs[1].shape) == [2, 2]
