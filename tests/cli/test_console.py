"""Streams: the result alone on stdout, progress on stderr, and what terminals get."""

from __future__ import annotations

import io
import json
import sys
import time

import pytest

from anyshape.cli import console
from tests.cli.project import process


def test_progress_is_plain_lines_on_stderr(exported, folder):
    lines = exported[1].stderr.splitlines()
    assert [line for line in lines if "print" not in line] == [
        f"loading {folder}/model.py:Net",
        "running the model",
        "converting with torch.export",
        "checking what torch.export made",
    ]


def test_json_is_alone_on_stdout_whatever_is_printed(folder, exported):
    loud = "import atexit, model\nNet = model.Net\natexit.register(print, 'printed at exit')\n"
    (folder / "loud.py").write_text(loud)
    result = process("check", exported[0], f"{folder}/loud.py:Net", "--quick", "--json", "--quiet")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["verdict"] == "checked"
    for text in ("the file prints", "C code prints", "C code prints late", "printed at exit"):
        assert text in result.stderr


# ---- terminals


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("no_color", "expected"), [("", "\x1b[1;32mchecked:\x1b[0m m.onnx"), ("1", "\x1b[1mchecked:\x1b[0m m.onnx")]
)
def test_a_terminal_gets_emphasis_and_nothing_else(monkeypatch, no_color, expected):
    for name in ("FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    console._print_result("checked: m.onnx, right [at] :smile: " + "x" * 300)
    assert stream.getvalue() == f"{expected}, right [at] :smile: {'x' * 300}\n"


def test_progress_in_a_terminal_leaves_nothing_behind(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with console._progress(quiet=False) as tell:
        tell("converting")
        time.sleep(0.3)
    assert "converting" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")
