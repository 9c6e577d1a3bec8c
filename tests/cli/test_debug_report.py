"""The debug report, read whole: what a stranger needs, and nothing that is nobody's business."""

from __future__ import annotations

import getpass
import platform
import re
from pathlib import Path

import click
import pytest

from anyshape.cli import console
from anyshape.cli.console import perform
from anyshape.cli.debug_report import _Cleaner, _lines, versions_text
from anyshape.cli.endings import Ending
from anyshape.errors import SavingError
from tests.cli.project import run
from tests.onnxfile.strangers import text_model

VERSIONS = """\
anyshape debug report
  Python <version> on <system>
  anyshape <version>
  torch <version>
  onnx <version>
  onnx-ir <version>
  onnxscript <version>
  onnxruntime <version>
  numpy <version>
  sympy <version>
"""

BAD = """
import torch

SECRET = 'a line that no finding shows'

class Bad(torch.nn.Module):
    def forward(self, x):
        return x.view(2, 8, 4).mean(1)

def inputs():
    return (torch.randn(2, 32),)

dims = {"x": "batch 32"}
"""

REFUSED = """
command
  anyshape export ./bad.py:Bad -o ./out.onnx --quiet --debug-report report.txt
  ended with code 3

declaration
  batch 1..

result
  refused: no file written

  error[pinned-dim]: `batch` cannot vary
    --> bad.py:8:16 in Bad.forward
    |
  8 |         return x.view(2, 8, 4).mean(1)
    |                ^^^^^^^^^^^^^^^ `batch` becomes 2 here
    = note: smallest size that breaks it: batch = 1; PyTorch fails there too
    = help: take the size from `x`   [tried: same result at batch = 2, runs at 1, 3, 4]
            - return x.view(2, 8, 4).mean(1)
            + return x.view(x.shape[0], 8, 4).mean(1)
"""


def _masked(text: str) -> str:
    text = re.sub(r"\d+\.\d+\.\d+(\.\d+)?(\+\w+)? on .*", "<version> on <system>", text)
    text = re.sub(r"\b\d+\.\d+(\.\w+)*(\+\w+)?$", "<version>", text, flags=re.MULTILINE)
    return re.sub(r"\d+\.\d s\b", "<seconds> s", text)


def test_versions_alone_are_printed():
    ran = run("--debug-report")
    assert ran.exit_code == 0
    assert _masked(ran.stdout) == VERSIONS


def test_what_is_not_installed_is_said(monkeypatch):
    from importlib import metadata

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert "\n  torch is not installed\n" in versions_text()
    assert "onnxruntime-gpu" not in versions_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text(BAD)
    return tmp_path


def test_a_refusal_is_told_with_its_declaration_and_findings(folder):
    ran = run("export", folder / "bad.py:Bad", "-o", folder / "out.onnx", "--quiet", "--debug-report", "report.txt")
    assert ran.exit_code == 3
    assert ran.stderr == "debug report: report.txt\n"
    assert _masked((folder / "report.txt").read_text()) == VERSIONS + REFUSED


def test_ways_that_were_tried_are_told(folder):
    (folder / "net.py").write_text("import torch\n\nnet = torch.nn.Linear(4, 3)\n\ndims = {'input': 'batch 4'}\n")
    arguments = (
        "net.py:net",
        "-o",
        "n.onnx",
        "--input",
        "input: float32[batch, 4]",
        "--quick",
        "--quiet",
        "--seed",
        "0",
    )
    ran = run("export", *arguments, "--debug-report", "report.txt")
    assert ran.exit_code == 0
    text = _masked((folder / "report.txt").read_text())
    assert "\nways tried\n  torch.export checked after <seconds> s\n" in text
    assert "\ndeclaration\n  input: float32[batch, 4]\n  batch 1..\n" in text
    assert "  ended with code 0\n" in text


def test_every_file_of_a_checkpoint_has_its_ways():
    way = {"strategy": "torch.export", "outcome": "failed", "reason": "no", "seconds": 1.25}
    results = [{"inputs": [{"name": name, "dtype": "int64", "axes": [None, 2]}], "attempts": [way]} for name in "ab"]
    ending = Ending(0, "checked: both", {"results": results, "assumptions": [{"what": "n > 1", "at": None}]})
    told = ["a: int64[?, 2]", "b: int64[?, 2]"]
    lines = "\n".join(_lines(ending, ["export", "./folder"])).split("\n\n", 1)[1]
    assert lines == (
        "command\n  anyshape export ./folder\n  ended with code 0\n\nassumptions\n  n > 1\n\n"
        + "".join(f"declaration\n  {one}\n\nways tried\n  torch.export failed after 1.2 s: no\n\n" for one in told)
        + "result\n  checked: both"
    )


def test_no_weights_no_other_source_and_no_name_of_the_machine_stand_in_it(folder):
    run("export", folder / "bad.py:Bad", "-o", folder / "out.onnx", "--quiet", "--debug-report", "report.txt")
    text = (folder / "report.txt").read_text().split("\n\n", 1)[1]
    assert "SECRET" not in text
    assert str(folder) not in text
    assert not re.search(r"(?<![\w.~>])/\w", text)
    for name in (getpass.getuser(), platform.node()):
        assert not re.search(rf"\b{re.escape(name)}\b", text)


@pytest.mark.parametrize(
    ("line", "clean"),
    [
        ("no file `/home/alice/models/net.onnx`", "no file `<folder>/net.onnx`"),
        ("'/srv/a b'", "'<folder>/a b'"),
        (r"C:\Users\alice\net.py:3", "<folder>/net.py:3"),
        ("limit n // 2 <= 4, seq/2, docs/index.md", "limit n // 2 <= 4, seq/2, docs/index.md"),
        ("./net.py and ~/x", "./net.py and ~/x"),
        ("\x1b[31mred", r"\x1b[31mred"),
    ],
)
def test_paths_are_cut(line, clean):
    assert _Cleaner()(line) == clean


def test_known_folders_and_names_are_replaced(folder, monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "alice")
    monkeypatch.setattr(platform, "node", lambda: "tower.example.org")
    monkeypatch.setenv("HOME", "/home/alice")
    cleaned = _Cleaner()(f"{folder}/net.py /home/alice/x alice@tower, alices malice, tower.example.org")
    assert cleaned == "./net.py ~/x <name>@<name>, alices malice, <name>"


def test_a_bug_is_told_with_its_frames_and_no_source(folder):
    @click.command()
    @click.pass_context
    def broken(context):
        from anyshape.cli.debug_report import keep_place

        keep_place(context, None, "report.txt")

        def work(_tell):
            raise TypeError(f"a secret of {Path.cwd()}")

        raise SystemExit(perform(work, refusal=1, as_json=False, debug=False, quiet=True))

    with pytest.raises(SystemExit) as end:
        broken.main([], standalone_mode=False)
    assert end.value.code == 4
    text = (folder / "report.txt").read_text()
    assert "\nraised at\n  anyshape/cli/console.py:" in text
    assert "test_debug_report.py:" in text
    assert text.endswith(" in work\n  TypeError\n")
    assert "raise TypeError" not in text
    assert "TypeError: a secret of .; --debug" in text


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("bad.py", "`bad.py` is there and is no debug report: name another file"),
        (".", "`.` is a folder: name a file in it"),
    ],
)
def test_nothing_else_is_overwritten(folder, name, sentence):
    model = folder / "m.onnx"
    model.write_bytes(text_model("main (float[n] x) => (float[n] y) { y = Neg(x) }").SerializeToString())
    ran = run("check", model, "--debug-report", name)
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1] == f"Error: Invalid value for '--debug-report': {sentence}"
    assert (folder / "bad.py").read_text() == BAD


def test_a_report_is_replaced_and_one_that_cannot_be_written_is_one_sentence(folder, monkeypatch):
    model = folder / "m.onnx"
    model.write_bytes(text_model("main (float[n] x) => (float[n] y) { y = Neg(x) }").SerializeToString())
    arguments = ("check", model, "--quick", "--quiet", "--debug-report", "new/report.txt")
    for _ in range(2):
        assert run(*arguments).exit_code == 0
    assert [path.name for path in (folder / "new").iterdir()] == ["report.txt"]

    def refuse(_ending):
        raise SavingError("`report.txt` cannot be written: No space left on device")

    monkeypatch.setattr(console, "write_report", refuse)
    ran = run(*arguments)
    assert ran.exit_code == 0
    assert ran.stderr == "error: no debug report: `report.txt` cannot be written: No space left on device\n"
