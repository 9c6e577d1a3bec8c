"""Streams: the result alone on stdout, progress on stderr, and what terminals get."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import time

import onnx
import pytest

from anyshape.cli import console
from tests.cli.project import process
from tests.onnxfile import drawing


def test_progress_is_plain_lines_on_stderr(exported, folder):
    lines = exported[1].stderr.splitlines()
    assert lines.count("the model prints") == 1
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


def test_names_in_a_file_reach_no_terminal_as_they_are(tmp_path):
    name = "n\x1b]0;owned\x07\nerror: nothing to see"
    path = drawing.write(tmp_path / "model.onnx", drawing.DOUBLED)
    model = onnx.load(path)
    model.graph.input[0].name = model.graph.node[0].input[0] = model.graph.node[0].input[1] = name
    onnx.save(model, path)
    shown = name.encode("unicode_escape").decode()
    done = process("check", str(path), "--quick", "--trusted")
    assert f"  input    {shown}  float32[batch, seq]" in done.stdout.splitlines()
    model.graph.node[0].op_type = name
    onnx.save(model, path)
    refused = process("check", str(path), "--quick", "--trusted")
    assert refused.returncode == 1
    assert "\x1b" not in refused.stdout + refused.stderr


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
    console._print_result("checked in float32: m.onnx")
    assert stream.getvalue().endswith(f"{expected.replace('checked', 'checked in float32')}\n")


def test_progress_in_a_terminal_leaves_nothing_behind(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with console._progress(quiet=False) as tell:
        tell("converting")
        time.sleep(0.3)
    assert stream.getvalue() == "\rconverting, 0 s\x1b[K\r\x1b[K"


LOUD = """
import torch
print("the file prints")
class Loud(torch.nn.Module):
    def forward(self, x):
        print("the model prints")
        return x + 1
"""


def on_screen(output: str) -> list[str]:
    """What a terminal shows in the end, by the few signs that are used."""
    rows, column = [""], 0
    for part in re.findall(r"\x1b\[[\d;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", output):
        if part == "\r":
            column = 0
        elif part == "\n":
            rows, column = [*rows, ""], 0
        elif part == "\x1b[K":
            rows[-1] = rows[-1][:column]
        elif not part.startswith("\x1b"):
            rows[-1] = rows[-1][:column] + part + rows[-1][column + len(part) :]
            column += len(part)
    return [row.rstrip() for row in rows]


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
def test_a_real_terminal_keeps_what_was_printed_and_the_result(tmp_path):
    import pty

    (tmp_path / "loud.py").write_text(LOUD)
    command = [sys.executable, "-m", "anyshape", "export", "loud.py:Loud", "-o", "m.onnx", "--quick"]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.environ |= {"TERM": "xterm", "COLUMNS": "80"}
        os.execv(sys.executable, [*command, "--input", "x: float32[batch, seq]"])
    written = b""
    with contextlib.suppress(OSError):  # which is how a terminal says that nobody writes any more
        while part := os.read(terminal, 4096):
            written += part
    assert os.waitpid(child, 0)[1] == 0
    assert b"\rchecking what torch.export made, " in written
    rows = on_screen(written.decode())
    assert rows[:2] == ["the file prints", "the model prints"]
    assert rows[2].startswith("checked: m.onnx, right at ")
    assert sum(row == "the model prints" for row in rows) == 1
    assert not any(text in row for row in rows for text in ("loading", "running", "converting", "checking"))
