"""TARGET as it is written: taken apart without running anything, and the sentence that fits what is none."""

from __future__ import annotations

import zipfile

import pytest

from anyshape.cli.target_texts import Step, TargetText, read_target
from anyshape.errors import DeclarationError
from tests.cli.project import MODEL

CALLED = {
    "model.py:Net": (Step("Net"),),
    "model.py:Net()": (Step("Net", ((), {})),),
    "model.py:Net(4, depth=-2)": (Step("Net", ((4,), {"depth": -2})),),
    "model.py:Net(4).encode": (Step("Net", ((4,), {})), Step("encode")),
    "model.py:build('a:b.c', {1: [None, (True, 1e-3)]}).linear": (
        Step("build", (("a:b.c", {1: [None, (True, 1e-3)]}), {})),
        Step("linear"),
    ),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("text", CALLED)
def test_names_and_literal_arguments_are_taken_apart(here, text):
    found = read_target(text)
    assert (found.text, found.place, found.steps) == (text, "model.py", CALLED[text])


def test_a_path_may_hold_spaces_umlauts_and_colons(here):
    place = here / "mein Ordner: größer"
    place.mkdir()
    (place / "net.py").write_text(MODEL)
    assert read_target(f"{place}/net.py:Net").place == f"{place}/net.py"
    assert read_target("json.decoder:JSONDecoder").place == "json.decoder"


def test_a_name_that_is_made_otherwise_is_left_to_the_file(here):
    (here / "made.py").write_text("globals()['Ne' + 't'] = 3\n")
    (here / "all_of_it.py").write_text("from model import *\n")
    assert read_target("made.py:Net").place == "made.py"
    assert read_target("all_of_it.py:Net").place == "all_of_it.py"


def test_nothing_is_run(here):
    (here / "loud.py").write_text("open('ran', 'w')\nNet = 3\n")
    read_target("loud.py:Net")
    with pytest.raises(DeclarationError):
        read_target("loud.py:Net(open('ran', 'w'))")
    assert not (here / "ran").exists()


LITERALS = "which is no literal: write numbers, text, True, False, None, or lists, tuples and dicts of them"
NO_TARGET = "names no model: write `FILE.py:NAME` or `package.module:NAME`"
NO_NAME = "names no model in `model.py`: write `model.py:NAME` or `'model.py:NAME(4, depth=2)'`"
SENTENCES = {
    "": f"`` {NO_TARGET}",
    "model": f"`model` {NO_TARGET}",
    ":Net": f"`:Net` {NO_TARGET}",
    "model.py:": f"`model.py:` {NO_TARGET}",
    "model.py:3": f"`3` {NO_NAME}",
    "model.py:Net.": f"`Net.` {NO_NAME}",
    "model.py:Net[0]": f"`Net[0]` {NO_NAME}",
    "model.py:Net(4, depth=2": f"`Net(4, depth=2` {NO_NAME}",
    "model.py:" + "(" * 9999: f"`{'(' * 9999}` {NO_NAME}",
    "model.py": "`model.py` is a file with no name behind it: write `model.py:NAME`; did you mean `model.py:Net` or "
    "`model.py:Pinned` or `model.py:Strided`?",
    "modle.py": "there is no file `modle.py`; did you mean `model.py`?",
    "modle.py:Net": "there is no file `modle.py`; did you mean `model.py`?",
    "far/away.py:Net": "there is no file `far/away.py`",
    "./nothere": "there is no file or folder `./nothere`",
    "nothere.pt": "there is no file `nothere.pt`",
    "weight.pt": "there is no file `weight.pt`; did you mean `weights.pt`?",
    "folder": "`folder` is a folder: `anyshape export` takes that of a checkpoint, every command `FILE.py:NAME`",
    "weights.pt": "`weights.pt` holds weights and no code: name the model, too, `FILE.py:NAME --weights weights.pt`",
    "program.pt2": "`program.pt2` is a program of torch.export: load it in a Python file, "
    '`program = torch.export.load("program.pt2")`, and name that: `FILE.py:program`',
    "m.onnx": "`m.onnx` is an ONNX file already: `anyshape make-dynamic m.onnx -o FILE` frees its sizes, `anyshape "
    "check m.onnx` checks it",
    "table.csv": "`table.csv` is no Python file: write `FILE.py:NAME` or `package.module:NAME`",
    "./table.csv:Net": "`./table.csv` is no Python file",
    "broken.py:Net": "`broken.py:Net` cannot be loaded: SyntaxError: '(' was never closed (broken.py, line 2)",
    "nulls.py:Net": "`nulls.py:Net` cannot be loaded: SyntaxError: source code string cannot contain null bytes",
    "zzz.module:Net": "there is no module `zzz`",
    "modle:Net": "there is no module `modle`; did you mean `model`?",
    "a-b:Net": "`a-b` is neither a Python file nor the name of a module",
    "model.py:Nett": "`model.py` has no `Nett`; did you mean `Net`?",
    "model.py:Net(size)": f"`Net(size)` has the argument `size`, {LITERALS}",
    "model.py:Net(*[1])": f"`Net(*[1])` has the argument `*[1]`, {LITERALS}",
    "model.py:Net(x=print())": f"`Net(x=print())` has the argument `print()`, {LITERALS}",
    "model.py:Net(**{})": "`Net(**{})` has `**`: write each argument with its name",
}


@pytest.mark.parametrize("text", SENTENCES, ids=lambda text: text[:20])
def test_what_is_no_target_gets_the_sentence_that_fits(here, text):
    (here / "folder").mkdir()
    for name in ("weights.pt", "program.pt2", "m.onnx", "table.csv"):
        (here / name).touch()
    (here / "broken.py").write_text("import torch\nNet = torch.nn.Linear(1, 2")
    (here / "nulls.py").write_bytes(b"Net = 3\n\0")
    with pytest.raises(DeclarationError) as caught:
        read_target(text)
    assert str(caught.value) == SENTENCES[text]


def test_an_archive_of_torchscript_is_its_own_model(here):
    with zipfile.ZipFile(here / "scripted.pt", "w") as archive:
        archive.writestr("scripted/code/__torch__.py", "")
    assert read_target("scripted.pt") == TargetText("scripted.pt", "scripted.pt", (), is_archive=True)
    method = read_target("scripted.pt:encode")
    assert (method.place, method.steps, method.is_archive) == ("scripted.pt", (Step("encode"),), True)
