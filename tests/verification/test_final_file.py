"""The file that is written is the one that was judged, but for labels and metadata; else nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.conversion.graph import finish
from anyshape.onnxfile.contract import KEY
from anyshape.onnxfile.interface import read_interface
from anyshape.onnxfile.saving import write_model
from anyshape.runtime.session import Session
from anyshape.source.spans import Span
from anyshape.stages import free_readings
from anyshape.verification import candidate_check
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
    proto.metadata_props.add(key="anyshape.contract", value="{}")
    onnx.save(proto, other)
    assert (computation_of(judged) == computation_of(other)) is is_same


def test_other_metadata_than_the_contract_is_a_part_of_it(tmp_path: Path) -> None:
    judged, other = write(tmp_path / "a.onnx"), write(tmp_path / "b.onnx")
    proto = onnx.load(other)
    proto.metadata_props.add(key="ort_config", value="{}")
    onnx.save(proto, other)
    assert computation_of(judged) != computation_of(other)


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


LABELLED = TIMES.replace("=> (float[n]", "=> (float[other]")
CALLS = ({"x": np.float32([1, 2, np.nan])}, {"x": np.ones(2, np.int64)})


def _as_model(text: str) -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(HEAD + text))


def test_a_final_file_with_the_same_labels_is_not_opened_again(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx")
    judged = JudgedFile.of(path, Session(path), CALLS).before(_as_model(TIMES))
    assert judged.runs is None

    def refuse(path: Path) -> Session:
        raise AssertionError(path)

    assert judged.finding(path, HOME, refuse) is None


def test_a_final_file_with_other_labels_gives_the_same_bits_or_is_told(tmp_path: Path) -> None:
    path, final = write(tmp_path / "m.onnx"), write(tmp_path / "final.onnx", LABELLED)
    judged = JudgedFile.of(path, Session(path), CALLS).before(_as_model(LABELLED))
    assert judged.runs is not None
    assert len(judged.runs) == 1  # integers do not go in
    assert judged.finding(final, HOME) is None
    other = write(tmp_path / "other.onnx", TIMES.replace("2.0", "2.0000002"))
    finding = judged.finding(final, HOME, lambda _: Session(other))
    assert finding is not None
    assert finding.headline == (
        "error[wrong-values]: the final file gives other values, unlike the one that was checked"
    )
    assert finding.helps == ("this is a defect of anyshape: please report it with the model",)


def test_labels_that_nobody_announced_are_told(tmp_path: Path) -> None:
    path, final = write(tmp_path / "m.onnx"), write(tmp_path / "final.onnx", LABELLED)
    finding = JudgedFile.of(path).finding(final, HOME)
    assert finding is not None
    assert finding.message == "the final file declares other outputs, unlike the one that was checked"


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def _swapped(model: ir.Model) -> None:
    next(iter(model.graph)).op_type = "Sub"


def _baked(model: ir.Model) -> None:
    model.graph.inputs[0].shape = ir.Shape([3])


def _mislabelled(model: ir.Model) -> None:
    model.graph.outputs[0].type = ir.SequenceType(ir.TensorType(ir.DataType.FLOAT))


@pytest.mark.parametrize("change", [_swapped, _baked, _mislabelled])
def test_nothing_is_written_where_relabelling_changed_the_computation(
    change: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = finish.add_metadata

    def spoilt(model: ir.Model, entries: dict[str, str]) -> None:
        real(model, entries)
        if KEY in entries:  # the file was judged by then
            change(model)

    monkeypatch.setattr(finish, "add_metadata", spoilt)
    path = tmp_path / "m.onnx"
    path.write_bytes(b"before")
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Doubled(), torch.randn(3), path, dims={"x": "n"}, quick=True)
    (finding,) = refused.value.findings
    assert finding.message == "the final file computes something else, unlike the one that was checked"
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def _count_loads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    loads: list[object] = []

    class Counted(onnxruntime.InferenceSession):  # type: ignore[misc]
        def __init__(self, source: object, *args: object, **kwargs: object) -> None:
            loads.append(source)
            super().__init__(source, *args, **kwargs)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Counted)
    return loads


def _encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)


def test_a_healthy_model_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anyshape.export(Doubled(), torch.randn(3), dims={"x": "n"}, quick=True)  # what a process learns of its runtime
    loads = _count_loads(monkeypatch)
    path = tmp_path / "m.onnx"
    anyshape.export(_encoder(), torch.randn(2, 6, 16), path, dims={"src": "batch seq 16"}, quick=True)
    assert len(loads) == 1
    assert read_interface(onnx.load(path)).outputs[0].axes == ("batch", "seq", 16)


class Chosen(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[x > 0]


def test_a_file_whose_labels_no_trace_foretells_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    anyshape.export(Doubled(), torch.randn(3), dims={"x": "n"}, quick=True)
    loads = _count_loads(monkeypatch)
    result = anyshape.export(Chosen(), torch.randn(5), dims={"x": "n"}, quick=True)
    assert result.outputs[0].axes == ("output_dim0",)
    assert len(loads) == 2


def test_labels_that_are_foretold_wrongly_blame_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """With them ONNX Runtime computes otherwise: the size of an output is a number to it, which is used inside."""
    real = candidate_check.foretold_labels

    def wrong(*args: object) -> list[list[int | str] | None]:
        assert real(*args) == [["n"], []]
        return [[3], []]

    monkeypatch.setattr(candidate_check, "foretold_labels", wrong)
    result = anyshape.export(Sized(), torch.randn(3), dims={"x": "n"}, quick=True)
    assert result.verdict == "checked"
    assert [port.axes for port in result.outputs] == [("n",), ()]


class Sized(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.abs()
        return y, y.sum() * y.shape[0]


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
