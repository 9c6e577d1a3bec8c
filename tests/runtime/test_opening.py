from __future__ import annotations

from dataclasses import asdict

import numpy as np
import onnxruntime
import pytest

import anyshape
from anyshape.errors import DeclarationError
from anyshape.runtime.opening import Opening, load_runtime
from tests.onnxfile.strangers import text_model

DOUBLE = text_model("main (float[n] x) => (float[n] y) { y = Add(x, x) }").SerializeToString()


def test_a_model_is_opened_as_bytes_or_by_its_path(tmp_path):
    (tmp_path / "m.onnx").write_bytes(DOUBLE)
    for source in (DOUBLE, str(tmp_path / "m.onnx")):
        (found,) = Opening(source).open().run(None, {"x": np.ones(2, np.float32)})
        assert found.tolist() == [2, 2]


def test_an_opening_is_plain_values():
    assert Opening(**asdict(Opening(DOUBLE, threads=1))) == Opening(DOUBLE, threads=1)


def test_options_say_what_was_asked_for(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        onnxruntime, "InferenceSession", lambda _, options, providers, **_further: seen.append((options, providers))
    )
    Opening(DOUBLE, threads=3, is_optimised=False, is_packed=False, folder=str(tmp_path)).open()
    ((options, providers),) = seen
    assert options.intra_op_num_threads == 3
    assert options.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    assert options.get_session_config_entry("session.disable_prepacking") == "1"
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert providers == ["CPUExecutionProvider"]


def test_what_is_no_library_is_named(tmp_path):
    with pytest.raises(DeclarationError, match=r"^`none.so` is no library of custom operators: "):
        Opening(DOUBLE, libraries=["none.so"]).open()


def test_the_runtime_is_there():
    assert load_runtime() is onnxruntime


def test_a_file_that_is_not_loaded_is_not_told_on_the_screen(tmp_path, capfd):
    path = tmp_path / "m.onnx"
    path.write_bytes(DOUBLE.replace(b"main", b"m\xffin").replace(b"Add", b"A\xfed"))
    with pytest.raises(Exception, match=r".") as refusal:
        Opening(str(path)).open()
    with pytest.raises(anyshape.AnyshapeError):
        anyshape.load(path)
    assert str(refusal.value)
    assert capfd.readouterr() == ("", "")
