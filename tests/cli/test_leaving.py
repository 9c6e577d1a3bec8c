"""The end of a process: everybody has had their turn, and what they wrote is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from anyshape.cli.leaving import Leaving

MODEL = """
import atexit, ctypes, os, sys, threading, time

import torch

kept = open("unclosed.txt", "w")
kept.write("of an unclosed file")
raw = open("unclosed.bin", "wb")
raw.write(b"of bytes")


class Teardown:
    def __del__(self):
        os.write(2, b"taken apart\\n")


one = Teardown()


@atexit.register
def last():
    print("of atexit", file=sys.stderr)
    ctypes.CDLL(None).puts(b"of C")


def work():
    time.sleep(0.3)
    open("thread.txt", "w").write("of a thread")


threading.Thread(target=work).start()


class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(4, 2)
"""
COMMAND = (
    "-m", "anyshape", "export", "model.py:Net", "-o", "m.onnx",
    "--weights", "random", "--input", "input: float32[batch, 4]",
)  # fmt: skip


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran


def test_all_that_was_left_to_do_is_done_and_nothing_is_taken_apart(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    ran = _run(tmp_path, *COMMAND)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("checked: m.onnx")
    assert "of C" not in ran.stdout
    said = ran.stderr.splitlines()
    assert said[-2:] == ["of atexit", "of C"]  # and not `taken apart`
    assert (tmp_path / "unclosed.txt").read_text() == "of an unclosed file"
    assert (tmp_path / "unclosed.bin").read_bytes() == b"of bytes"
    assert (tmp_path / "thread.txt").read_text() == "of a thread"


@pytest.mark.parametrize(
    ("command", "code"), [(("--version",), 0), (("inspect", "absent.onnx"), 2), (("explain", "x"), 2)]
)
def test_the_code_is_that_of_the_command(tmp_path: Path, command: tuple[str, ...], code: int) -> None:
    assert _run(tmp_path, "-m", "anyshape", *command).returncode == code


EARLIER = """
import atexit, sys
atexit.register(print, "who was first is last")
sys.argv = ["anyshape", "inspect", "absent.onnx"]
from anyshape.cli import main
main()
"""


def test_who_was_registered_before_is_not_left_out(tmp_path: Path) -> None:
    ran = _run(tmp_path, "-c", EARLIER)
    assert ran.returncode == 2
    assert ran.stderr.endswith("who was first is last\n")


@pytest.mark.parametrize("code", [None, "text"])
def test_an_end_that_is_no_code_is_left_to_python(code: object) -> None:
    ends: list[int] = []
    leaving = Leaving(ends.append)
    leaving.code = code
    leaving._leave()
    assert ends == []
    leaving.code = 3
    leaving._leave()
    assert ends == [3]
