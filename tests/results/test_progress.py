"""Progress: its words, and that it is drawn only where it changes, away while others write, and gone in the end."""

from __future__ import annotations

import io
import re
import sys
import time
from types import SimpleNamespace

import pytest
import torch

import anyshape
from anyshape.results import progress
from anyshape.results.progress import ProgressLine, count_size, shown_progress, told, without_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(line_of) -> tuple[ProgressLine, list[str], SimpleNamespace]:
    rows: list[str] = []
    clock = SimpleNamespace(now=100.0)
    return line_of(lambda stage, rest, _: rows.append(stage + rest), lambda: clock.now), rows, clock


def test_the_line_says_stage_size_time_gone_and_time_to_expect():
    line, rows, clock = drawn(ProgressLine)
    line.tell("converting with torch.export")
    clock.now += 4
    line.tell("checking what torch.export made")
    clock.now += 3
    line.count(12, 52)
    line.draw()
    assert rows == [
        "converting with torch.export, 0 s",
        "checking what torch.export made, 4 s",
        "checking what torch.export made, size 12 of 52, 7 s of about 17 s",
    ]


def test_the_line_is_away_while_somebody_else_writes():
    line, rows, _ = drawn(ProgressLine)
    line.tell("running")
    with line.paused():
        line.draw()
        rows.append("printed")
    assert rows == ["running, 0 s", "", "printed", "running, 0 s"]


def test_a_narrow_terminal_cuts_the_stage_and_what_has_not_changed_is_not_drawn_again(monkeypatch):
    monkeypatch.setattr(progress, "_width", lambda _: 30)
    stream = Terminal()
    with shown_progress(stream) as tell:
        tell("checking what torch.export with repairs made")
        time.sleep(0.5)
    assert stream.getvalue() == "\rchecking what torch.e..., 0 s\x1b[K\r\x1b[K"


def test_where_there_is_no_terminal_lines_follow_each_other(monkeypatch):
    for stream, dumb in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setenv("TERM", "dumb" if dumb else "xterm")
        with shown_progress(stream) as tell:
            tell("one")
            count_size(1, 2)
            with without_line():
                tell("two")
        assert stream.getvalue() == "one\ntwo\n"


def test_a_notebook_shows_a_bar(monkeypatch):
    shown: list[str] = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda *_, **__: handle)
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with shown_progress(io.StringIO()) as tell:
        tell("checking <x>")
        count_size(1, 4)
        time.sleep(0.4)
    assert shown[0] == "<progress></progress> checking &lt;x&gt;, 0 s"
    assert re.fullmatch(
        r'<progress value="0\.250"></progress> checking &lt;x&gt;, size 1 of 4, \d+ s of about \d+ s', shown[-2]
    )
    assert shown[-1] == ""


def test_progress_is_true_a_function_or_nothing(capsys):
    stages: list[str] = []
    for asked in (True, stages.append, None, False):
        with told(asked) as tell:
            tell("one")
    assert stages == ["one"]
    assert capsys.readouterr().err == "one\n"


@pytest.mark.parametrize("verb", ["export", "check"])
def test_true_is_understood_by_the_verbs(tmp_path, capsys, verb):
    model, example, dims = torch.nn.ReLU(), torch.ones(3, 4), {"input": "batch 4"}
    path = tmp_path / "m.onnx"
    anyshape.export(model, example, path, dims=dims, quick=True, progress=verb == "export")
    if verb == "check":
        anyshape.check(path, model, example, quick=True, progress=True)
    expected = ["running the model", "converting with torch.export", "checking what torch.export made"]
    assert capsys.readouterr().err.splitlines() == (expected if verb == "export" else ["checking m.onnx"])


def test_what_the_model_prints_is_shown_once(capsys):
    class Loud(torch.nn.Module):
        def forward(self, x):
            print("the model prints")  # noqa: T201
            return x + 1 if x.shape[0] > 3 else x

    anyshape.export(Loud(), torch.ones(3, 4), dims={"x": "batch 4"}, quick=True)
    assert capsys.readouterr().out == "the model prints\n"
