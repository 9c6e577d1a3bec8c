"""The file that is written is the one that was judged, but for labels and metadata; else nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.conversion.graph import finish
from anyshape.onnxfile.saving import write_model
from anyshape.runtime.session import Session
from anyshape.source.spans import Span
from anyshape.stages import free_readings
from anyshape.verification.final_file import JudgedFile, computation_of

HEAD = '<ir_version: 9, opset_import: ["" : 20]> g '
TIMES = "(float[n] x) => (float[n] y) <float[1] w = {2.0}> { y = Mul (x, w) }"
HOME = Span("m.py", 1)


def write(path: Path, text: str = TIMES) -> Path:
    onnx.save(onnx.parser.parse_model(HEAD + text), path)
    return path


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        (TIMES, True),
        (TIMES.replace("=> (float[n]", "=> (float[7]"), True),
        (TIMES.replace("2.0", "2.0000002"), False),
        (TIMES.replace("Mul (x, w)", "Mul (w, x)"), False),
        (TIMES.replace("(float[n] x)", "(float[m] x)"), False),
    ],
)
def test_labels_of_outputs_are_no_part_of_what_a_file_computes(tmp_path: Path, text: str, is_same: bool) -> None:
    judged, other = write(tmp_path / "a.onnx"), write(tmp_path / "b.onnx", text)
    proto = onnx.load(other)
    proto.metadata_props.add(key="anyshape", value="{}")
    onnx.save(proto, other)
    assert (computation_of(judged) == computation_of(other)) is is_same


def test_weights_that_change_places_are_another_computation(tmp_path: Path) -> None:
    found = []
    for values in ((b"\0\0\0\0", b""), (b"", b"\0\0\0\0")):
        proto = onnx.load(write(tmp_path / "m.onnx"))
        for name, raw in zip("ab", values, strict=True):
            proto.graph.initializer.add(name=name, data_type=onnx.TensorProto.FLOAT, raw_data=raw)
        onnx.save(proto, tmp_path / "m.onnx")
        found.append(computation_of(tmp_path / "m.onnx"))
    assert found[0] != found[1]


def test_weights_beside_a_file_may_be_renamed_but_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    weights = ir.tensor(np.ones((40, 40), np.float32), name="w")
    model = ir.from_proto(onnx.parser.parse_model(HEAD + TIMES))
    model.graph.initializers["w"].const_value = weights
    write_model(model, path, external_data=True)
    judged = computation_of(path)
    proto = onnx.load(path, load_external_data=False)
    location = next(e for e in proto.graph.initializer[0].external_data if e.key == "location")
    (tmp_path / location.value).rename(tmp_path / "other")
    location.value = "other"
    onnx.save(proto, path)
    assert computation_of(path) == judged
    (tmp_path / "other").write_bytes(bytes(6400))
    assert computation_of(path) != judged


def test_a_final_file_that_gives_other_bits_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx")
    judged = JudgedFile.of(path, Session(path), [{"x": np.float32([1, 2, np.nan])}, {"x": np.ones(2, np.int64)}])
    assert len(judged.runs) == 1  # integers do not go in
    assert judged.finding(path, Session(path), HOME) is None
    other = write(tmp_path / "other.onnx", TIMES.replace("2.0", "2.0000002"))
    finding = judged.finding(path, Session(other), HOME)
    assert finding is not None
    assert finding.headline == (
        "error[wrong-values]: the final file gives other values, unlike the one that was checked"
    )
    assert finding.helps == ("this is a defect of anyshape: please report it with the model",)


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def _swapped(model: ir.Model, axes: object) -> None:
    del axes
    next(iter(model.graph)).op_type = "Sub"


def _baked(model: ir.Model, axes: object) -> None:
    del axes
    model.graph.inputs[0].shape = ir.Shape([3])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_swapped, "computes something else"),
        (_baked, "fails in ONNX Runtime: Got invalid dimensions for input: x for the following indices"),
    ],
)
def test_nothing_is_written_where_relabelling_changed_the_computation(
    change: Callable[..., None], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish, "set_output_axes", change)
    path = tmp_path / "m.onnx"
    path.write_bytes(b"before")
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Doubled(), torch.randn(3), path, dims={"x": "n"}, quick=True)
    (finding,) = refused.value.findings
    assert finding.message == f"the final file {said}, unlike the one that was checked"
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_freed_file_is_held_to_the_reading_that_was_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    static, out = write(tmp_path / "s.onnx", TIMES.replace("[n]", "[7]")), tmp_path / "out.onnx"
    real = free_readings._write_to_stage

    def spoilt(trial, stage, verdict):
        real(trial, stage, verdict)
        if trial.judged is not None:
            proto = onnx.load(stage.path)
            proto.graph.node[0].op_type = "Div"
            onnx.save(proto, stage.path)

    result = anyshape.make_dynamic(static, {"x": "n"}, out=out)
    assert result.verdict == "checked"
    before = out.read_bytes()
    monkeypatch.setattr(free_readings, "_write_to_stage", spoilt)
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.make_dynamic(static, {"x": "n"}, out=out)
    assert refused.value.findings[0].message == (
        "the final file computes something else, unlike the one that was checked"
    )
    assert out.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [out, static]
