"""`anyshape diagnose`: what is printed, what is written, and the exit codes; the findings are made up here."""

from __future__ import annotations

import json
import linecache
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from click.testing import CliRunner, Result

from anyshape.cli import diagnoses, program
from anyshape.results.finding import Finding
from anyshape.sizes.notation import parse_expression
from anyshape.source.edits import Change, Edit
from anyshape.source.spans import Span

MODEL = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        y = x.view(2, 8)
        y = y.expand(2, 8)
        return y.sum(1) / 8
"""
EDITED = MODEL.replace("x.view(2, 8)", "x.view(x.shape[0], 8)")
EDITED_TWICE = EDITED.replace("y.expand(2, 8)", "y.expand(x.shape[0], 8)")
X = "x: float32[batch, 8]"


def edit(line: int, column: int, *, safe: bool, path: str = "model.py") -> Edit:
    change = Change(line, column, line, column + 1, "2", "x.shape[0]")
    return Edit(path, MODEL, (change,), "take the size from `x`", "same result at batch = 2", safe)


VIEW = Finding("pinned-dim", "`batch` cannot vary", Span("model.py", 6, 13, 6, 25), edit=edit(6, 20, safe=True))
EXPAND = Finding("pinned-dim", "`batch` is fixed", Span("model.py", 7, 13, 7, 27), edit=edit(7, 22, safe=False))
MEAN = Finding("frozen-value", "8 is a size", Span("model.py", 8, 16, 8, 28), level="warning")
LIMIT = Finding("bounded-dim", "`batch` is bounded", Span("model.py", 6, 13, 6, 25))


@pytest.fixture
def place(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    linecache.clearcache()  # which knows this name from elsewhere, as spans do
    monkeypatch.setattr("anyshape.source.spans._FILENAMES", {})
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path / "model.py"


@pytest.fixture
def diagnose(place, monkeypatch):
    """Runs the command on findings that are given; what the library was asked for is kept."""

    def run(findings: list[Finding], *arguments: str, answers: str | None = None) -> Result:
        def made_up(model, args=(), **rest):
            run.asked = (model, args, rest)
            rest["progress"]("looking")
            return findings

        stand_in = ModuleType("anyshape.verbs.diagnose")
        stand_in.diagnose = made_up
        monkeypatch.setitem(sys.modules, "anyshape.verbs.diagnose", stand_in)
        return CliRunner().invoke(program, ["diagnose", "model.py:Net", "--input", X, *arguments], input=answers)

    return run


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(diagnoses, "can_ask", lambda: True)


# ---- findings


def test_every_finding_is_shown_and_the_last_line_counts(diagnose, place):
    result = diagnose([VIEW, EXPAND, MEAN])
    assert result.exit_code == 1
    assert result.stdout == (
        f"{VIEW}\n\n{EXPAND}\n\n{MEAN}\n\n"
        "2 errors, 1 warning; 1 edit can be applied with --write, 1 more with --write --unsafe\n"
    )
    assert result.stderr == "loading model.py:Net\nlooking\n"
    assert place.read_text() == MODEL


def test_without_findings_all_is_well(diagnose):
    result = diagnose([], "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "no findings\n", "")


def test_the_library_is_asked_for_what_was_declared(diagnose):
    diagnose([], "--size", "batch=1..9", "--seed", "5")
    model, args, rest = diagnose.asked
    assert type(model).__name__ == "Net"
    assert args == ()
    assert rest.pop("kwargs")["x"].shape[1:] == (8,)
    assert callable(rest.pop("progress"))
    dims = {"x": [parse_expression("batch"), 8]}
    assert rest == {
        "dims": dims, "sizes": {"batch": "1..9"}, "where": [], "make_inputs": None, "examples": None, "seed": 5,
    }  # fmt: skip


def test_weights_are_loaded(diagnose, place):
    place.write_text("import torch\nNet = lambda: torch.nn.Linear(8, 2)\n")
    torch.save({"weight": torch.full((2, 8), 3.0), "bias": torch.zeros(2)}, "state.pt")
    diagnose([], "--weights", "state.pt")
    assert diagnose.asked[0].weight.unique().tolist() == [3.0]


@pytest.mark.parametrize(
    ("findings", "line"),
    [
        ([LIMIT], "1 error"),
        ([MEAN, MEAN], "2 warnings"),
        ([VIEW], "1 error; 1 edit can be applied with --write"),
        ([EXPAND], "1 error; 1 edit can be applied with --write --unsafe"),
        ([VIEW, replace(VIEW, edit=edit(7, 22, safe=True))], "2 errors; 2 edits can be applied with --write"),
        ([VIEW, replace(LIMIT, edit=VIEW.edit)], "2 errors; 1 edit can be applied with --write"),
    ],
)
def test_the_last_line_says_what_can_be_applied(findings, line, diagnose):
    result = diagnose(findings)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, line)


def test_concise_gives_one_line_per_finding(diagnose):
    result = diagnose([VIEW, MEAN], "--concise")
    assert result.exit_code == 1
    assert result.stdout == (
        "model.py:6:13: error[pinned-dim]: `batch` cannot vary\n"
        "model.py:8:16: warning[frozen-value]: 8 is a size\n"
        "1 error, 1 warning; 1 edit can be applied with --write\n"
    )


def test_the_document_holds_the_findings(diagnose):
    result = diagnose([VIEW, MEAN], "--json", "--quiet")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "findings": [json.loads(VIEW.to_json()), json.loads(MEAN.to_json())],
        "applied": [],
    }
    assert result.stderr == "1 error, 1 warning; 1 edit can be applied with --write\n"


def test_the_document_without_findings_is_empty(diagnose):
    result = diagnose([], "--json", "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == {"findings": [], "applied": []}


def test_a_model_that_cannot_be_loaded_is_wrong_usage(diagnose, place):
    place.write_text("")
    result = diagnose([], "--quiet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: `model.py` has no `Net`\n"


# ---- --write


def test_write_applies_the_safe_edits(diagnose, place):
    before = f"{VIEW}\n\n{EXPAND}\n\n"  # as the file is now
    result = diagnose([VIEW, EXPAND], "--write")
    assert result.exit_code == 1
    assert place.read_text() == EDITED
    assert result.stdout == (
        f"{before}wrote model.py: 1 change\n2 errors; 1 edit applied, 1 more can be applied with --write --unsafe\n"
    )


def test_write_unsafe_applies_all_edits_of_a_file_at_once(diagnose, place):
    before = f"{VIEW}\n\n{EXPAND}\n\n"
    result = diagnose([VIEW, EXPAND], "--write", "--unsafe")
    assert result.exit_code == 0
    assert place.read_text() == EDITED_TWICE
    assert result.stdout == f"{before}wrote model.py: 2 changes\n2 errors; 2 edits applied\n"


def test_two_files_are_both_written(diagnose, place):
    place.with_name("other.py").write_text(MODEL)
    other = replace(VIEW, span=Span("other.py", 6, 13, 6, 25), edit=edit(6, 20, safe=True, path="other.py"))
    result = diagnose([VIEW, other], "--write", "--concise")
    assert result.exit_code == 0
    assert [place.read_text(), place.with_name("other.py").read_text()] == [EDITED, EDITED]
    assert result.stdout.splitlines()[2:] == [
        "wrote model.py: 1 change", "wrote other.py: 1 change", "2 errors; 2 edits applied",
    ]  # fmt: skip


def test_an_edit_that_two_findings_share_is_applied_once(diagnose, place):
    result = diagnose([VIEW, replace(LIMIT, edit=VIEW.edit)], "--write", "--concise")
    assert (result.exit_code, place.read_text()) == (0, EDITED)
    assert result.stdout.splitlines()[2:] == ["wrote model.py: 1 change", "2 errors; 1 edit applied"]


def test_after_write_a_warning_is_no_failure(diagnose):
    result = diagnose([VIEW, MEAN], "--write")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "1 error, 1 warning; 1 edit applied")


def test_an_error_without_an_edit_is_left(diagnose, place):
    result = diagnose([LIMIT], "--write")
    assert (result.exit_code, place.read_text()) == (1, MODEL)
    assert result.stdout == f"{LIMIT}\n\n1 error; no edit applied\n"


def test_an_unsafe_edit_waits_for_unsafe(diagnose, place):
    result = diagnose([EXPAND], "--write")
    assert (result.exit_code, place.read_text()) == (1, MODEL)
    line = "1 error; no edit applied, 1 edit can be applied with --write --unsafe"
    assert result.stdout.splitlines()[-1] == line


def test_of_two_edits_that_clash_one_is_left_for_another_time(diagnose, place):
    other = Edit("model.py", MODEL, (Change(6, 20, 6, 21, "2", "-1"),), "leave it to `view`", "", safe=True)
    result = diagnose([VIEW, replace(LIMIT, edit=other)], "--write")
    assert (result.exit_code, place.read_text()) == (1, EDITED)
    assert result.stdout.splitlines()[-1] == "2 errors; 1 edit applied, 1 more can be applied with --write"


def test_a_file_that_has_changed_does_not_hold_up_the_others(diagnose, place):
    place.with_name("other.py").write_text("x = 3\n")
    other = replace(VIEW, edit=edit(6, 20, safe=True, path="other.py"))
    result = diagnose([other, VIEW], "--write", "--quiet")
    assert (result.exit_code, place.read_text()) == (1, EDITED)
    assert place.with_name("other.py").read_text() == "x = 3\n"
    assert result.stderr == "error: `other.py` has changed: `2` no longer stands at line 6; nothing was written\n"
    assert result.stdout.splitlines()[-2:] == [
        "wrote model.py: 1 change", "2 errors; 1 edit applied, 1 more can be applied with --write",
    ]  # fmt: skip


def test_an_edit_that_stands_in_the_file_already_is_applied_but_not_written(diagnose, place):
    place.write_text(EDITED)
    result = diagnose([VIEW], "--write", "--concise")
    assert (result.exit_code, place.read_text()) == (0, EDITED)
    assert result.stdout.splitlines()[1:] == ["1 error; 1 edit applied"]


def test_the_document_holds_what_was_applied(diagnose, place):
    result = diagnose([VIEW, EXPAND], "--write", "--json", "--quiet")
    assert (result.exit_code, place.read_text()) == (1, EDITED)
    document = json.loads(result.stdout)
    assert document["applied"] == [document["findings"][0]["edit"]]
    assert document["applied"][0]["title"] == "take the size from `x`"


# ---- --interactive


def test_interactive_asks_about_each_edit_and_writes_what_was_agreed_to(diagnose, place, terminal):
    shown = [str(finding) for finding in (VIEW, MEAN, EXPAND)]  # as the file is now
    result = diagnose([VIEW, MEAN, EXPAND], "--interactive", "--quiet", answers="n\ny\n")
    assert result.exit_code == 1
    assert place.read_text() == MODEL.replace("y.expand(2, 8)", "y.expand(x.shape[0], 8)")
    assert result.stdout == "wrote model.py: 1 change\n2 errors, 1 warning; 1 edit applied\n"
    asked = [line for line in result.stderr.splitlines() if "apply" in line]
    assert asked == [
        "apply this edit (y, n, q): n",
        "apply this edit, which may change what the code means (y, n, q): y",
    ]
    assert all(text in result.stderr for text in shown)


def test_interactive_yes_to_all_leaves_nothing(diagnose, place, terminal):
    result = diagnose([VIEW, EXPAND], "--interactive", answers="y\ny\n")
    assert (result.exit_code, place.read_text()) == (0, EDITED_TWICE)


def test_q_asks_no_more_and_keeps_what_was_agreed_to(diagnose, place, terminal):
    third = replace(LIMIT, edit=edit(7, 22, safe=True))
    result = diagnose([VIEW, EXPAND, third], "--interactive", answers="y\nq\n")
    assert (result.exit_code, place.read_text()) == (1, EDITED)
    assert result.stderr.count("apply this edit") == 2


def test_another_answer_is_asked_again(diagnose, place, terminal):
    result = diagnose([VIEW], "--interactive", answers="perhaps\ny\n")
    assert (result.exit_code, place.read_text()) == (0, EDITED)


def test_an_edit_that_two_findings_share_is_asked_about_once(diagnose, place, terminal):
    result = diagnose([VIEW, replace(LIMIT, edit=VIEW.edit)], "--interactive", answers="y\n")
    assert (result.exit_code, place.read_text()) == (0, EDITED)


def test_when_the_answers_end_nothing_is_written(diagnose, place, terminal):
    result = diagnose([VIEW, EXPAND], "--interactive", answers="y\n")
    assert (result.exit_code, place.read_text(), result.stdout) == (130, MODEL, "")
    assert result.stderr.splitlines()[-1] == "error: stopped"


# ---- wrong usage


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--unsafe"], "--unsafe is about what is written: give --write, too"),
        (["--interactive", "--unsafe"], "--unsafe is about what is written: give --write, too"),
        (["--interactive", "--json"], "--interactive and --json exclude each other"),
        (["--concise", "--json"], "--concise and --json exclude each other"),
        (["--interactive"], "--interactive asks, but nobody can answer: stdin is no terminal"),
    ],
)
def test_options_that_exclude_each_other_are_refused_before_the_model_is_loaded(arguments, sentence, diagnose):
    result = diagnose([VIEW], *arguments)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"Error: {sentence}"
    assert not hasattr(diagnose, "asked")
