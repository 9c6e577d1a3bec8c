"""What is ambiguous in a static file is read in one way after the other, until one passes its checks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import anyshape
from anyshape.onnxfile.contract import read_contract
from anyshape.stages import free_readings

HEAD = '<ir_version: 8, opset_import: ["" : 18]> main '
SQUARE = "(float[4, 4] x) => (float[4, 4] y) <int64[2] s = {4, 4}> { y = Reshape (x, s) }"
TABLE = "(float[2, 6] x) => (float[2, 6] y) <float[1, 6] t = {3, 1, 4, 1, 5, 9}> { y = Add (x, t) }"


@pytest.fixture
def made(tmp_path: Path):
    def make(text: str, dims: dict[str, str], **options: object) -> tuple[anyshape.Result, Path]:
        onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "static.onnx")
        out = tmp_path / "dynamic.onnx"
        return anyshape.make_dynamic(tmp_path / "static.onnx", dims, out=out, **options), out

    return make


def test_a_number_that_may_be_the_dim_or_not_is_read_as_the_checks_allow(made) -> None:
    """The second 4 of the shape is as large as the batch, but is none."""
    result, out = made(SQUARE, {"x": "batch 4"})
    assert result.verdict == "checked"
    x = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)
    np.testing.assert_array_equal(onnxruntime.InferenceSession(out).run(None, {"x": x})[0], x)


def test_a_table_is_cut_and_its_end_is_a_limit_in_the_file(made) -> None:
    result, out = made(TABLE, {"x": "batch seq"})
    assert [limit.partition(":")[0] for limit in result.limits] == ["seq <= 6"]
    contract = read_contract(onnx.load(out))
    assert contract is not None
    assert [str(condition) for condition in contract.conditions] == ["seq <= 6"]


def test_the_number_of_readings_is_told_where_none_is_right(made, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice near the end counts from there or from the start; here both are spoiled."""

    def spoiled(*args: object, **options: object):
        freed = free(*args, **options)
        freed.model.graph[-1].op_type = "Exp"
        return freed

    free = free_readings.free
    monkeypatch.setattr(free_readings, "free", spoiled)
    monkeypatch.setattr(free_readings, "named", lambda *_: 1 / 0)
    text = (
        "(float[2, 6] x) => (float[2, 5] y) <int64[1] a = {0}, int64[1] b = {5}, int64[1] c = {1}> "
        "{ s = Slice (x, a, b, c) y = Neg (s) }"
    )
    with pytest.raises(anyshape.ExportError) as refused:
        made(text, {"x": "_ seq"})
    (finding,) = refused.value.findings
    assert finding.notes[-1].endswith(" readings of what is ambiguous in the file were tried, and none is right")
