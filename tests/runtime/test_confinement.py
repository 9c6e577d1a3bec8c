"""A stranger's file runs elsewhere, gives the same results, and is stopped where it takes too much."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import anyshape
from anyshape.errors import DeclarationError
from anyshape.onnxfile.untrusted import load_checked
from anyshape.runtime import confinement
from anyshape.runtime.confinement import StoppedError, confined
from anyshape.runtime.session import RuntimeFailureError, Session
from tests.onnxfile.strangers import endless_loop, large_constant, text_model

pytestmark = pytest.mark.usefixtures("strangers")

DOUBLE = text_model("main (float[n, 2] x) => (float[n, 2] y) { y = Add(x, x) }")


def _written(folder, model):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def double(tmp_path):
    path = _written(tmp_path, DOUBLE)
    with confined(path, load_checked(path), trusted=False):
        yield path


def _process():
    found = confinement._CURRENT.get()
    assert found is not None
    return found._process


def test_results_are_the_same_over_there(double):
    session = Session(double)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(session.run({"x": x})[0], 2 * x)
    assert session.inputs == {"x": ("tensor(float)", ("n", 2))}
    assert session.outputs == ("y",)
    effort = session.effort({"x": x})
    assert effort is not None
    assert effort.calls == 1


def test_what_earlier_runs_took_and_is_kept_counts_against_no_later_request(double, monkeypatch):
    session, process, allowed = Session(double), confinement._CURRENT.get(), {}
    ask = process.ask
    monkeypatch.setattr(
        process, "ask", lambda what, *rest, **more: allowed.update({what: rest[1]}) or ask(what, *rest, **more)
    )
    x = np.ones((3, 2), np.float32)
    session.run({"x": x})
    process._peak = 2**32  # as large inputs leave it
    session.effort({"x": x})  # by a record, which is asked for when the run is over
    assert set(allowed) == {"open", "run", "profile"}
    assert all(limits[0] >= 2**32 for limits in allowed.values())


def test_what_the_runtime_refuses_is_told_in_its_words(double):
    session = Session(double)
    with pytest.raises(RuntimeFailureError, match="Got invalid dimensions for input: x"):
        session.run({"x": np.ones((1, 3), np.float32)})
    assert session.run({"x": np.ones((1, 2), np.float32)})[0].shape == (1, 2)


def test_a_process_that_dies_is_a_sentence_and_stays_dead(double):
    session = Session(double)
    os.kill(_process().pid, signal.SIGSEGV)
    for _ in range(2):
        with pytest.raises(StoppedError) as stopped:
            session.run({"x": np.ones((1, 2), np.float32)})
        assert str(stopped.value) == "ONNX Runtime crashed on `model.onnx` (exit code -11): it cannot be judged"


def test_nothing_is_left_running(tmp_path):
    path = _written(tmp_path, DOUBLE)
    with confined(path, load_checked(path), trusted=False):
        Session(path)
        process = _process()
        assert process.poll() is None
    assert process.poll() is not None
    assert confinement._CURRENT.get() is None


def test_a_trusted_file_runs_here(tmp_path):
    path = _written(tmp_path, DOUBLE)
    with confined(path, load_checked(path), trusted=True):
        assert confinement._CURRENT.get() is None


def test_a_check_says_the_same_in_a_process_of_its_own(tmp_path):
    path = _written(tmp_path, DOUBLE)
    found = [anyshape.check(path, quick=True, trusted=trusted).to_dict() for trusted in (True, False)]
    for result in found:
        result["verification"].pop("seconds")
    assert found[0] == found[1]


def test_a_file_is_made_dynamic_in_a_process_of_its_own(tmp_path):
    path = _written(tmp_path, text_model("main (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }"))
    for trusted in (True, False):
        anyshape.make_dynamic(path, out=tmp_path / f"{trusted}.onnx", quick=True, trusted=trusted)
    assert (tmp_path / "True.onnx").read_bytes() == (tmp_path / "False.onnx").read_bytes()


def _refusal(call):
    with pytest.raises(DeclarationError) as refusal:
        call()
    return str(refusal.value)


@pytest.mark.parametrize("verb", ["check", "make_dynamic"])
def test_a_constant_without_measure_is_stopped(tmp_path, verb):
    path = _written(tmp_path, large_constant("n" if verb == "check" else 2))
    assert _refusal(lambda: getattr(anyshape, verb)(path)) == (
        "`model.onnx` takes more than 0.6 GB in ONNX Runtime and was stopped: trusted=True runs it without limits"
    )


@pytest.mark.parametrize("verb", ["check", "make_dynamic"])
def test_a_loop_without_end_is_stopped(tmp_path, verb):
    path = _written(tmp_path, endless_loop("n" if verb == "check" else 2))
    assert _refusal(lambda: getattr(anyshape, verb)(path)) == (
        "`model.onnx` was still running after 2 s and was stopped: trusted=True runs it without limits"
    )


def test_what_the_working_folder_holds_is_not_imported_over_there(tmp_path, monkeypatch):
    path = _written(tmp_path, DOUBLE)
    (tmp_path / "numpy.py").write_text("raise SystemExit('a trap')")
    monkeypatch.chdir(tmp_path)
    with confined(path, load_checked(path), trusted=False):
        assert Session(path).outputs == ("y",)
