from __future__ import annotations

import pytest

import anyshape
from tests.onnxfile import drawing

CASES = {
    "main (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }": "batch (axis 0 of `x`); no constant pins it",
    """main (float[2, 3] x, float[2, 3] z) => (float[6] y) <int64[1] shape = {6}>
    { s = Add(x, z) y = Reshape(s, shape) }""": "batch (axis 0 of `x`, axis 0 of `z`); 1 constant pins it",
}


@pytest.mark.parametrize(("text", "said"), CASES.items())
def test_a_static_file_tells_whether_its_batch_could_be_free(tmp_path, text, said):
    assert str(anyshape.inspect(drawing.write(tmp_path / "m.onnx", text)).freeable) == said


def test_what_cannot_be_free_names_the_node(tmp_path):
    text = (
        "main (float[2, 3] x) => (float[4, 3] y) <float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> { [mix] y = MatMul(w, x) }"
    )
    found = anyshape.inspect(drawing.write(tmp_path / "m.onnx", text))
    assert str(found.freeable).startswith("batch (axis 0 of `x`) cannot be freed: MatMul node `mix` pins `batch`")
    assert "\n  pinned   batch (axis 0 of `x`) cannot be freed: " in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "main (float[n, 3] x) => (float[n, 3] y) { y = Relu(x) }",
        "main (float[8388608, 2] x) => (float[8388608, 2] y) { y = Relu(x) }",
        "main (float[2, 3] x) => (float[2, 3] y) { y = Mystery(x) }",
    ],
    ids=["dynamic", "large", "unknown"],
)
def test_what_is_dynamic_large_or_does_not_run_is_not_tried(tmp_path, text):
    assert anyshape.inspect(drawing.write(tmp_path / "m.onnx", text)).freeable is None
