"""Sessions on files with large weights leave them where they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape
from anyshape.onnxfile.placement import listed_data
from anyshape.runtime import session as runtime
from anyshape.runtime.session import Session
from anyshape.sizes import budgets
from anyshape.sizes.effort import Effort


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[onnxruntime.SessionOptions]:
    """The options of every session that is opened."""
    real, found = onnxruntime.InferenceSession, []

    def open_session(model, options, **how):
        found.append(options)
        return real(model, options, **how)

    monkeypatch.setattr(onnxruntime, "InferenceSession", open_session)
    return found


def export(path: Path, dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 24)).to(dtype).eval()
    anyshape.export(model, (torch.randn(3, 24, dtype=dtype),), path, dims={"input": "batch 24"}, external_data=True)
    return model


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_large_weights_are_neither_packed_nor_pooled_and_give_the_same(tmp_path, monkeypatch, opened, dtype):
    monkeypatch.setattr(budgets, "BYTES_OF_BIG_WEIGHTS", 1000)
    model = export(tmp_path / "m.onnx", dtype)
    opened.clear()
    x = torch.randn(5, 24, dtype=dtype)
    (result,) = Session(tmp_path / "m.onnx").run({"input": x.numpy()})
    (options,) = opened
    assert options.get_session_config_entry("session.disable_prepacking") == "1"
    assert not options.enable_cpu_mem_arena
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    assert np.allclose(result, model(x).detach().numpy(), rtol=tolerance, atol=tolerance)


def test_large_weights_are_let_go_and_mapped_again(tmp_path, monkeypatch, opened):
    export(tmp_path / "m.onnx", torch.float32)
    monkeypatch.setattr(budgets, "BYTES_OF_BIG_WEIGHTS", 1000)
    opened.clear()
    feeds = {"input": torch.randn(5, 24).numpy()}
    session = Session(tmp_path / "m.onnx")
    (before,) = session.run(feeds)
    session.rest()
    (after,) = session.run(feeds)
    assert np.array_equal(before, after)
    assert len(opened) == 2


def test_small_weights_stay_loaded(tmp_path, opened):
    export(tmp_path / "m.onnx", torch.float32)
    opened.clear()
    session = Session(tmp_path / "m.onnx")
    session.rest()
    session.run({"input": torch.randn(5, 24).numpy()})
    assert len(opened) == 1


def test_small_weights_are_loaded_as_usual(tmp_path, opened):
    export(tmp_path / "m.onnx", torch.float32)
    assert all(options.enable_cpu_mem_arena for options in opened)


@pytest.mark.parametrize("name", ["m.onnx.data", "m.onnx_data", "weights.bin"])
def test_weights_count_whatever_their_file_is_called(tmp_path, name):
    export(tmp_path / "m.onnx", torch.float32)
    model = onnx.load(tmp_path / "m.onnx")
    [data] = listed_data(tmp_path / "m.onnx")
    (tmp_path / data).unlink()
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location=name, size_threshold=0)
    assert runtime._weights_beside(tmp_path / "m.onnx") == ((tmp_path / name).stat().st_size, {onnx.TensorProto.FLOAT})


def test_a_model_that_holds_its_weights_itself_has_none_beside(tmp_path, monkeypatch):
    monkeypatch.setattr(budgets, "EXTERNAL_FROM_BYTES", 2**30)
    model = nn.Linear(24, 32)
    anyshape.export(model, (torch.randn(3, 24),), tmp_path / "m.onnx", dims={"input": "batch 24"}, quick=True)
    (tmp_path / "m.onnx.data").write_bytes(b"somebody else's")
    assert runtime._weights_beside(tmp_path / "m.onnx") == (0, set())


# ---- what a run takes


def test_a_run_is_counted_in_the_nodes_of_the_file(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 20]>
    g (float[n, 64] x) => (float[n, 8] y) <float[64, 8] w = {WEIGHTS}> { z = MatMul (x, w)  y = Relu (z) }"""
    model = onnx.parser.parse_model(text.replace("WEIGHTS", ", ".join(["1.0"] * 512)))
    session = Session(model.SerializeToString())
    x = np.zeros((4, 64), np.float32)
    effort = session.effort({"x": x})
    assert effort == Effort(2 * 32 + 4 * 64 * 8 / 32, 2, {"matmul": 128, "relu": 128})
    assert session.effort({"x": x}) is effort
    assert session.effort({"x": np.zeros((4, 3), np.float32)}) is None


# ---- as users open it


def test_large_files_are_run_once_with_the_default_options(tmp_path, monkeypatch, opened) -> None:
    monkeypatch.setattr(budgets, "BYTES_OF_BIG_WEIGHTS", 1000)
    export(tmp_path / "m.onnx", torch.float32)
    packed = [options.enable_cpu_mem_arena for options in opened]
    assert packed.count(True) == 1
    opened.clear()
    assert len(anyshape.check(tmp_path / "m.onnx").notes) == 1  # that only shapes were checked
    assert [options.enable_cpu_mem_arena for options in opened if not options.enable_profiling].count(True) == 1


def test_files_too_large_to_be_packed_say_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(budgets, "BYTES_OF_BIG_WEIGHTS", 1000)
    monkeypatch.setattr(budgets, "MOST_BYTES_TO_PACK", 1000)
    model = export(tmp_path / "m.onnx", torch.float32)
    _, note = anyshape.check(tmp_path / "m.onnx").notes
    assert note == (
        "run with weights that are mapped, and never with ONNX Runtime's default options, which pack them: "
        "that takes more than 0.0 GB"
    )
    assert note in anyshape.check(tmp_path / "m.onnx", model, torch.randn(3, 24)).notes


def test_a_file_that_is_wrong_with_default_options_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(budgets, "BYTES_OF_BIG_WEIGHTS", 1000)
    model = export(tmp_path / "m.onnx", torch.float32)
    real = Session.by_default

    def spoilt(self):
        session = real(self)
        run = session.run
        session.run = lambda feeds: [result + 1 for result in run(feeds)]
        return session

    monkeypatch.setattr(Session, "by_default", spoilt)
    with pytest.raises(anyshape.ExportError, match="with ONNX Runtime's default options"):
        anyshape.check(tmp_path / "m.onnx", model, torch.randn(3, 24))
    with pytest.raises(anyshape.ExportError, match="with ONNX Runtime's default options"):
        export(tmp_path / "n.onnx", torch.float32)


def test_a_twin_in_a_wider_type_is_not_run_with_default_options(tmp_path, monkeypatch) -> None:
    """Which would take four times the weights of a file that nobody can open so."""
    monkeypatch.setattr(budgets, "BYTES_OF_BIG_WEIGHTS", 1000)
    opened = []
    real = Session.by_default
    monkeypatch.setattr(Session, "by_default", lambda self: opened.append(self) or real(self))
    export(tmp_path / "m.onnx", torch.bfloat16)
    assert opened == []
    export(tmp_path / "n.onnx", torch.float16)
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("kind", "operator", "sentence"),
    [
        ("float16", "Relu", f"ONNX Runtime {onnxruntime.__version__} cannot run this file in float16 here: no kernel"),
        ("bfloat16", "Relu", f"ONNX Runtime {onnxruntime.__version__} cannot run bfloat16 here: no kernel"),
        ("float", "Relu", None),
        ("double", "Relu", None),
        ("double", "Erf", f"ONNX Runtime {onnxruntime.__version__} cannot run `Erf` in float64 here: no kernel"),
    ],
)
def test_a_type_without_kernels_is_told_from_what_the_file_holds(kind, operator, sentence):
    head = '<ir_version: 9, opset_import: ["" : 20]> g '
    model = onnx.parser.parse_model(f"{head} ({kind}[n] x) => ({kind}[n] y) {{ y = {operator}(x) }}")
    found = runtime.unrunnable_type(model, runtime.RuntimeFailureError("no kernel"))
    assert (None if found is None else str(found)) == sentence


def test_the_runtime_s_words_name_no_folder_of_ours():
    said = (
        "[ONNXRuntimeError] : 10 : INVALID_GRAPH : Load model from /tmp/x/.m failed.onnx failed:Node (n) Op (Slice) odd"
    )
    assert runtime.runtime_words(RuntimeError(said)) == "Node (n) Op (Slice) odd"
