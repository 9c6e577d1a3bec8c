"""Exit codes, the sentence and the document of every ending."""

from __future__ import annotations

import json

from click.testing import Result

import anyshape
from anyshape.results.attempt import Attempt
from anyshape.results.result import ExportError
from tests.cli.project import run


def ends_with(monkeypatch, error: BaseException, *arguments: str) -> Result:
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("anyshape.verbs.inspect.inspect", fail)
    monkeypatch.setattr("anyshape.cli.ask_file", lambda _text: None)
    return run("inspect", "m.onnx", *arguments)


def test_a_bug_of_ours_says_so(monkeypatch):
    result = ends_with(monkeypatch, ZeroDivisionError("no\nway"))
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr == (
        "error: this is a bug in anyshape: ZeroDivisionError: no way; --debug shows the traceback\n"
    )
    assert "Traceback (most recent call last)" in ends_with(monkeypatch, ZeroDivisionError(), "--debug").stderr


def test_the_codes_of_other_endings(monkeypatch):
    assert ends_with(monkeypatch, KeyboardInterrupt()).exit_code == 130
    assert ends_with(monkeypatch, OSError(28, "No space left on device")).stderr == (
        "error: the system refuses: [Errno 28] No space left on device\n"
    )
    stopped = ends_with(monkeypatch, SystemExit(0))
    assert (stopped.exit_code, stopped.stderr) == (2, "error: the model's own code ended the program with sys.exit\n")
    missing = ends_with(monkeypatch, ModuleNotFoundError(name="onnxruntime"))
    assert (missing.exit_code, missing.stderr) == (
        2,
        "error: onnxruntime is not installed: pip install 'anyshape[cpu]' (or 'anyshape[gpu]')\n",
    )


def test_errors_are_json_too(tmp_path):
    result = run("inspect", tmp_path / "no.onnx", "--json")
    sentence = f"there is no file `{tmp_path / 'no.onnx'}`"
    assert result.exit_code == 2
    assert json.loads(result.stdout) == {"error": {"kind": "declaration", "message": sentence}}
    assert result.stderr == f"error: {sentence}\n"


def test_debug_shows_the_traceback_of_every_attempt_and_what_made_it_slow(monkeypatch):
    forced = Attempt("x", "wrong", forced_by=("aten.copy_.default", "cond"))
    inlined = Attempt("y", "wrong", inlined=("aten.trapezoid.dx",))
    attempts = (Attempt("torch.export", "failed", "ValueError: inner", 0.0, ValueError("inner")), forced, inlined)
    result = ends_with(monkeypatch, ExportError(anyshape.Result("refused", attempts=attempts)), "--debug")
    assert result.exit_code == 1
    assert "  tried    torch.export, failed: ValueError: inner" in result.stdout
    assert result.stderr == (
        "---- torch.export\nValueError: inner\n\n"
        "---- x: all in simpler operators because of aten.copy_.default, cond\n"
        "---- y: in simpler operators aten.trapezoid.dx\n"
    )
