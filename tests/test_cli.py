"""The command line as a whole: help, wrong usage, and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from anyshape.cli import program
from tests.cli.project import run


def test_help_has_an_example_everywhere_and_tells_of_completion():
    assert all("\n  Example:\n    anyshape " in run(name, "--help").stdout for name in program.commands)
    text = run("--help").stdout
    assert "\n  Example:\n    anyshape export " in text
    assert 'eval "$(_ANYSHAPE_COMPLETE=bash_source anyshape)"' in text


USAGE_ERRORS = {
    ("export", "model.py:Net"): "Missing option '-o' / '--output'.",
    ("export", "m:N", "-o", "m", "--input", "x"): "Invalid value for '--input': `x` is not an input: write "
    "`name: dtype[axes]`, such as `tokens: int64[batch, seq] < 1000`",
    ("export", "m:N", "-o", "m", "--dim", "x"): "Invalid value for '--dim': `x` has no name and `=`: write NAME=AXES",
    ("export", "m:N", "-o", "m", "--quick", "--thorough"): "--quick and --thorough exclude each other",
    ("check", "m.onnx", "--at", "batch"): "Invalid value for '--at': `batch` is no list of sizes: write batch=1,seq=1",
    ("check", "m.onnx", "--dim", "x=batch"): "--dim is about the model: give TARGET, too",
    ("check", "m.onnx", "--weights", "w.pt"): "--weights is about the model: give TARGET, too",
}


@pytest.mark.parametrize("arguments", USAGE_ERRORS, ids=" ".join)
def test_wrong_options_end_with_code_two(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"Error: {USAGE_ERRORS[arguments]}"
    document = json.loads(run(*arguments, "--json").stdout)
    assert document == {"error": {"kind": "usage", "message": USAGE_ERRORS[arguments]}}


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_leaves_nothing_behind(tmp_path, number, code):
    (tmp_path / "slow.py").write_text(
        textwrap.dedent("""
        import pathlib, time, torch
        class Slow(torch.nn.Module):
            def forward(self, x):
                if torch.compiler.is_exporting():
                    pathlib.Path(__file__).with_name("started").touch()
                    time.sleep(60)
                return x + 1
        """)
    )
    command = [sys.executable, "-m", "anyshape", "export", "slow.py:Slow", "-o", "m.onnx", "--input", "x: float32[n]"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.05)
    assert any(entry.name.startswith(".anyshape-") for entry in tmp_path.iterdir())
    running.send_signal(number)
    output, errors = running.communicate(timeout=30)
    assert (running.returncode, output) == (code, ""), errors
    assert errors.splitlines()[-1] == f"error: {'terminated' if number == signal.SIGTERM else 'stopped'}"
    assert {entry.name for entry in tmp_path.iterdir()} - {"__pycache__"} == {"slow.py", "started"}


def test_streams_that_were_closed_before_are_no_reason_to_fail(tmp_path) -> None:
    """As of a daemon: Python has none then, and the next file would be the stream."""
    command = f"{sys.executable} -m anyshape explain pinned-dim"
    for closed in (">&-", ">&- 2>&-", "<&- >&- 2>&-"):
        run = ["sh", "-c", f"{command} {closed}"]
        ran = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
