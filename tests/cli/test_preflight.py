"""What is said first: wrong paths, targets, inputs and sizes, before torch, onnx and numpy are imported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.project import MODEL, TOKENS, process, run

OUTPUT = ("-o", "out.onnx")
SAID_FIRST = {
    ("export", "absent.py:Net", *OUTPUT): "there is no file `absent.py`",
    ("export", "model.py", *OUTPUT): "`model.py` is a file with no name behind it: write `model.py:NAME`; did you mean "
    "`model.py:Net` or `model.py:Pinned` or `model.py:Strided`?",
    ("export", "model.py:Net", *OUTPUT, "--weights", "w.pt"): "there is no file `w.pt`",
    ("export", "model.py:Net", *OUTPUT, "--weights", "folder"): "`folder` is a folder, not a file",
    ("export", "model.py:Net", "-o", "folder"): "`folder` is a folder: name a file in it, such as `folder/model.onnx`",
    ("export", "model.py:Net", "-o", "new/"): "`new/` ends like a folder: name a file in it, such as `new/model.onnx`",
    ("export", "model.py:Net", "-o", "model.py/m.onnx"): "`model.py` is a file, so that there can be no folder "
    "`model.py`",
    ("export", "model.py:Net", "-o", "model.py"): "`model.py` is what is read: name another file for -o",
    ("export", "model.py:Net", "-o", "other.py"): "`other.py` is there and holds no ONNX model: name another file, or "
    "remove it first",
    ("export", "model.py:Net", *OUTPUT, "--dtype", "flot16"): "--dtype is 'flot16': give a floating type such as "
    "float16 or bfloat16; did you mean `float16`?",
    ("export", "model.py:Net", *OUTPUT, "--report", "r.txt"): "`r.txt` is no name for a report: end it in .html for a "
    "page, in .json for its data",
    ("report", "absent.onnx", "-o", "r.html"): "there is no file `absent.onnx`",
    ("report", "model.py", "-o", "-"): "`-` is no file: a report takes its place whole, and is not piped; name it",
    ("report", "model.py", "-o", "folder"): "`folder` is a folder: name a file in it, such as `folder/report.html`",
    ("report", "model.py", "-o", "r.html", "--times", "other.py"): "`other.py` holds no measurements: keep what "
    "`anyshape bench --json` prints in it",
    ("export", "model.py:Net", "-o", "-"): "`-` is no file: a checked file takes its place whole, and is not piped; "
    "name it",
    ("export", "model.py:Net", "-o", "./old.pt", "--weights", "old.pt"): "`./old.pt` is what is read: name another "
    "file for -o",
    ("export", "model.py:Net", *OUTPUT, "--size", "seq=wide"): "the sizes of `seq` are `wide`: write `1..512`, `8..`, "
    "`32..1024 step 32` or numbers `1, 2, 4`",
    ("export", "model.py:Net", *OUTPUT, "--size", "seq=9..3"): "the sizes of `seq` from 9 to 3 in steps of 1 hold no "
    "size",
    ("export", "model.py:Net", *OUTPUT, "--where", "seq"): "`seq` is not a condition: write two sizes and "
    "one of ==, <=, >=, <, >, !=",
    ("export", "model.py:Net", *OUTPUT, "--input", "x: float31[n]"): "`x` is declared float31, which is no element "
    "type; did you mean `float32`?",
    ("export", "folder", "-o", "model.py"): "`model.py` is a file: a checkpoint is exported to a folder",
    ("check", "absent.onnx"): "there is no file `absent.onnx`",
    ("check", "absent.onnx", "model.py:Net"): "there is no file `absent.onnx`",
    ("check", "old.pt", "absent.py:Net"): "there is no file `absent.py`",
    ("check", "folder"): "`folder` is a folder, not a file",
    ("diagnose", "model.py:Nett"): "`model.py` has no `Nett`; did you mean `Net`?",
    ("dims", "m.onnx"): "there is no file `m.onnx`",
    ("inspect", "folder"): "`folder` is a folder, not a file",
    ("inspect", "absent.onnx"): "there is no file `absent.onnx`",
    ("make-dynamic", "absent.onnx", *OUTPUT): "there is no file `absent.onnx`",
    ("make-dynamic", "old.pt", "-o", "new/"): "`new/` ends like a folder: name a file in it, such as `new/model.onnx`",
    ("make-dynamic", "old.pt", *OUTPUT, "--model", "absent.py:Net"): "there is no file `absent.py`",
}


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "other.py").write_text("import torch")
    (tmp_path / "old.pt").touch()
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("arguments", SAID_FIRST, ids=" ".join)
def test_wrong_usage_is_one_sentence_and_the_only_one(here, arguments):
    before = sorted(path.name for path in here.iterdir())
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {SAID_FIRST[arguments]}\n"
    assert sorted(path.name for path in here.iterdir()) == before


def test_it_is_said_before_anything_large_is_imported(here):
    poison = here / "poison"
    poison.mkdir()
    for name in ("torch", "onnx", "onnx_ir", "numpy", "sympy", "onnxruntime", "rich"):
        (poison / f"{name}.py").write_text(f"raise SystemExit('{name} is imported')\n")
    path = os.pathsep.join([str(poison), *filter(None, [os.environ.get("PYTHONPATH")])])
    # one of each command: the sentences are read above
    for arguments in {arguments[0]: arguments for arguments in SAID_FIRST}.values():
        result = process(*arguments, env={**os.environ, "PYTHONPATH": path})
        assert (result.returncode, result.stderr) == (2, f"error: {SAID_FIRST[arguments]}\n")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="/proc of Linux")
def test_a_place_that_takes_no_file_is_no_bug_of_ours(here):
    result = run("export", "model.py:Net", "-o", "/proc/x.onnx", "--input", TOKENS)
    assert result.exit_code == 2
    assert result.stderr == "error: the folder `/proc` is the system's own and takes no files\n"


def test_what_is_no_ordinary_file_is_refused_and_stays(here):
    os.mkfifo("pipe")
    Path("loop.onnx").symlink_to("loop.onnx")
    long = "x" * 300
    said = {
        "pipe": (2, "`pipe` is a named pipe: only ordinary files are replaced"),
        "loop.onnx": (3, "`loop.onnx` cannot be written: Too many levels of symbolic links"),
        long: (3, f"`{long}` cannot be written: File name too long"),
    }
    for name, (code, sentence) in said.items():
        result = run("export", "model.py:Net", "-o", name, "--input", TOKENS)
        assert (result.exit_code, result.stderr) == (code, f"error: {sentence}\n")
    assert Path("pipe").is_fifo()


def test_a_file_may_be_made_dynamic_in_its_place(here):
    result = run("make-dynamic", "old.pt", "-o", "old.pt")
    assert result.stderr.splitlines()[-1] == "error: `old.pt` is not an ONNX file: it has no graph"


WANDERS = """
import os
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        os.chdir("/")
        return x + 1
"""


def test_a_model_that_changes_the_folder_does_not_change_where_its_file_goes(here):
    Path("wanders.py").write_text(WANDERS)
    result = run("export", "wanders.py:Net", "-o", "new/m.onnx", "--input", "x: float32[batch, 3]", "--quick")
    assert result.exit_code == 0, result.stderr
    assert os.getcwd() == "/"  # noqa: PTH109
    assert (here / "new" / "m.onnx").is_file()
