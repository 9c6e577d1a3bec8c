from __future__ import annotations

import pytest

import anyshape
from anyshape.runtime import session
from anyshape.sizes.spelling import on_the_command_line
from tests.onnxfile import drawing

CASES = {
    "main (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }": "batch is 2 (axis 0 of `x`)",
    "main (float[2, 3] x, float[2, 3] z) => (float[2, 3] y) { y = Add(x, z) }": (
        "batch is 2 (axis 0 of `x`, axis 0 of `z`)"
    ),
    "main (float[8388608, 2] x) => (float[8388608, 2] y) { y = Mystery(x) }": "batch is 8388608 (axis 0 of `x`)",
}


@pytest.mark.parametrize(("text", "said"), CASES.items())
def test_a_static_file_tells_its_batch_without_a_run(tmp_path, monkeypatch, text, said):
    monkeypatch.setattr(session, "load_runtime", lambda: pytest.fail("inspect runs the file"))
    found = anyshape.inspect(drawing.write(tmp_path / "m.onnx", text))
    assert str(found.freeable) == f"{said}: `anyshape.make_dynamic` frees it, or says what pins it"
    with on_the_command_line():
        assert str(found.freeable) == f"{said}: `anyshape make-dynamic` frees it, or says what pins it"
    assert f"\n  static   {found.freeable}" in str(found)


def test_a_dynamic_file_has_none(tmp_path):
    text = "main (float[n, 3] x) => (float[n, 3] y) { y = Relu(x) }"
    assert anyshape.inspect(drawing.write(tmp_path / "m.onnx", text)).freeable is None
