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


def _options_of(monkeypatch, **wishes):
    seen = []
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *given, **further: seen.append((given[1], further)))
    Opening(DOUBLE, **wishes).open()
    return seen[0]


def test_what_a_user_sets_is_set_last(monkeypatch):
    settings = {
        "session.disable_prepacking": 1, "graph_optimization_level": "ORT_ENABLE_BASIC", "enable_mem_pattern": "false",
        "inter_op_num_threads": "3", "use_deterministic_compute": True,
    }  # fmt: skip
    options, further = _options_of(
        monkeypatch, settings=settings, fixed={"n": 3}, spins=True, disabled_optimizers=["X"]
    )
    assert options.get_session_config_entry("session.disable_prepacking") == "1"
    assert options.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    assert (options.enable_mem_pattern, options.inter_op_num_threads) == (False, 3)
    assert options.use_deterministic_compute
    assert options.get_session_config_entry("session.force_spinning_stop") == "1"
    assert further["disabled_optimizers"] == ["X"]


def test_a_dim_of_one_size_takes_no_other():
    session = Opening(DOUBLE, fixed={"n": 3}).open()
    assert session.get_inputs()[0].shape == [3]


_KNOWN = (
    "`enable_cpu_mem_arena`, `enable_mem_pattern`, `enable_mem_reuse`, `execution_mode`, `execution_order`, "
    "`graph_optimization_level`, `inter_op_num_threads`, `use_deterministic_compute`, or entries of its config such as "
    "`session.disable_prepacking`"
)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "enable_mem_patern", "1",
            f"`enable_mem_patern` is no option of a session here: {_KNOWN}; did you mean `enable_mem_pattern`?",
        ),
        (
            "execution_mode", "fast",
            "the session's option `execution_mode` is 'fast': give one of ORT_SEQUENTIAL, ORT_PARALLEL",
        ),
        (
            "inter_op_num_threads", "-1",
            "the session's option `inter_op_num_threads` is '-1': give a number, true or false",
        ),
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_set_is_one_sentence(name, value, sentence):
    with pytest.raises(DeclarationError) as refusal:
        Opening(DOUBLE, settings={name: value}).open()
    assert str(refusal.value) == sentence
