"""What is printed: a finding with its edit, and a result in the words of its verb."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anyshape.onnxfile.interface import Port
from anyshape.results.attempt import Attempt
from anyshape.results.finding import Finding
from anyshape.results.result import Result, Verb
from anyshape.results.verification import THIS_MACHINE, Check, Verification
from anyshape.sizes.notation import parse_sizes
from anyshape.source.edits import Change, Edit
from anyshape.source.spans import Span

MODEL = """\
class Head:
    def forward(self, x):
        return x.view(2, 8, 64) + 1
"""
BATCH = Change(3, 23, 3, 24, "2", "x.shape[0]")


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "head.py").write_text(MODEL, encoding="utf-8")


def _shown(edit: Edit, *, helps: tuple[str, ...] = ()) -> str:
    finding = Finding(
        "pinned-dim",
        "`batch` cannot vary",
        Span("head.py", 3, 16, 3, 32, "Head.forward"),
        "`batch` becomes 2 here",
        ("smallest size that breaks it: batch = 1; PyTorch fails there too",),
        helps,
        edit=edit,
    )
    return str(finding)


def _edit(*changes: Change, text: str = MODEL, **given: object) -> Edit:
    values = {"title": "take the size from `x`", "tried": "same result at batch = 2, runs at 1, 3, 7", "safe": True}
    return Edit("head.py", text, changes, **{**values, **given})


HEAD = """\
error[pinned-dim]: `batch` cannot vary
  --> head.py:3:16 in Head.forward
  |
3 |         return x.view(2, 8, 64) + 1
  |                ^^^^^^^^^^^^^^^^ `batch` becomes 2 here
  = note: smallest size that breaks it: batch = 1; PyTorch fails there too
"""


def test_an_edit_follows_the_notes_and_comes_before_other_helps() -> None:
    assert _shown(_edit(BATCH), helps=("declare it",)) == HEAD + (
        "  = help: take the size from `x`   [tried: same result at batch = 2, runs at 1, 3, 7]\n"
        "          - return x.view(2, 8, 64) + 1\n"
        "          + return x.view(x.shape[0], 8, 64) + 1\n"
        "  = help: declare it"
    )


def test_an_unsafe_edit_says_so() -> None:
    assert "  = help: take the size from `x`   [unsafe; tried: it runs]\n" in _shown(
        _edit(BATCH, safe=False, tried="it runs")
    )
    assert "  = help: take the size from `x`   [unsafe]\n" in _shown(_edit(BATCH, safe=False, tried=""))
    assert "  = help: take the size from `x`\n" in _shown(_edit(BATCH, tried=""))


def test_several_lines_stand_one_after_the_other_without_their_common_indent() -> None:
    text = "def f(x):\n    n = 2\n    if n:\n\n        x = g(2)\n    return x.view(2)\n"
    changes = [Change(2, 9, 2, 10, "2", "3"), Change(5, 15, 5, 16, "2", "3"), Change(6, 19, 6, 20, "2", "3")]
    assert _shown(_edit(*changes, text=text)).removeprefix(HEAD).splitlines()[1:] == [
        "          - n = 2",
        "          + n = 3",
        "          -     x = g(2)",
        "          +     x = g(3)",
        "          - return x.view(2)",
        "          + return x.view(3)",
    ]


def test_what_does_not_fit_on_a_line_hangs_below_it() -> None:
    tried = "same result at batch = 2, seq = 8; runs at batch = 1, 3, 7 and at seq = 1, 7, 9, 16, 33"
    shown = _shown(_edit(BATCH, title="take the size of the batch from `x`", tried=tried))
    assert shown.removeprefix(HEAD).splitlines()[:2] == [
        "  = help: take the size of the batch from `x`",
        f"          [tried: {tried}]",
    ]
    shown = _shown(_edit(BATCH, tried=f"{tried}; a batch gives what its samples give"))
    assert shown.removeprefix(HEAD).splitlines()[:3] == [
        "  = help: take the size from `x`",
        f"          [tried: {tried}; a batch gives",
        "           what its samples give]",
    ]
    assert max(len(line) for line in shown.splitlines()) <= 120


# ---- results


CHECKED = Verification(
    (Check({"n": 3}, 0, 0.5), Check({"n": 8}, 0, 1.25)), skipped=(({"n": 64}, "too dear"),), seconds=0.26,
    runtime="ONNX Runtime 1.2", factor=8.0,
)  # fmt: skip


def _result(what: Verb = "export", **given: object) -> Result:
    ports = (Port("x", "float32", ("n", 3)),), (Port("y", "float32", None),)
    values = {"dims": {"n": parse_sizes("1..", dim="n")}, "verification": CHECKED, "opset": 20, "seconds": 1.04}
    return Result("checked", *ports, what=what, **{**values, **given})  # type: ignore[arg-type]


def test_a_result_says_where_it_is_right_and_what_it_took() -> None:
    attempts = (Attempt("torch.export", "wrong"), Attempt("with repairs", "checked"))
    result = _result(attempts=attempts, repairs=("a repair",), limits=("n <= 64",), path=Path("net.onnx"))
    assert str(result).splitlines() == [
        "checked: net.onnx, right at 2 sizes in ONNX Runtime 1.2 against PyTorch",
        "  input    x  float32[n, 3]",
        "  output   y  float32[...]",
        "  dims     n 1..",
        "  limit    n <= 64 (PyTorch itself)",
        "  repair   a repair",
        "  run      n 3 to 8 (2)",
        "  error    at most 1.2 x the model's own rounding noise (8 is allowed)",
        "  not run  1 planned size n = 64: too dear",
        "  took     1.0 s to convert by with repairs (opset 20), 0.3 s to check",
    ]


def test_what_the_machine_cut_stands_in_the_headline() -> None:
    cut = replace(CHECKED, skipped=(({"n": 64}, f"{THIS_MACHINE} has less memory free than the 8.0 GB predicted"),))
    lines = str(_result(verification=cut, path=Path("net.onnx"))).splitlines()
    assert lines[0] == (
        "checked: net.onnx, right at 2 sizes in ONNX Runtime 1.2 against PyTorch, CUT SHORT by this machine"
    )
    assert "  not run  1 planned size n = 64: this machine has less memory free than the 8.0 GB predicted" in lines
    assert (
        "  note     the clock or the memory of this machine cut sizes: elsewhere, or later, more would be run" in lines
    )


@pytest.mark.parametrize(
    ("what", "refused", "limit", "change"),
    [
        ("export", "refused: no file written", "n <= 64 (PyTorch itself)", "repair"),
        ("check", "refused: the file is wrong", "n <= 64 (PyTorch itself)", "repair"),
        ("make-dynamic", "refused: no file written", "n <= 64", "rewrite"),
    ],
)
def test_each_verb_has_its_words(what: Verb, refused: str, limit: str, change: str) -> None:
    assert str(Result("refused", what=what)) == refused
    lines = str(_result(what, limits=("n <= 64",), repairs=("one",) * 14)).splitlines()
    assert f"  limit    {limit}" in lines
    shown = [line for line in lines if line.startswith(f"  {change:<8}")]
    assert len(shown) == (13 if what == "make-dynamic" else 14)
    assert any(line.startswith("  took") for line in lines) is (what != "check")


def test_a_refusal_tells_what_was_tried_unless_a_finding_does() -> None:
    attempts = (Attempt("torch.export", "wrong", "`y` differs"), Attempt("again", "checked"))
    assert str(Result("refused", attempts=attempts)).splitlines()[1:] == ["  tried    torch.export, wrong: `y` differs"]
    again = (*attempts, Attempt("lifting", "wrong", "`y` differs"), Attempt("a", "failed"), Attempt("b", "failed"))
    rows = [line.removeprefix("  tried    ") for line in str(Result("refused", attempts=again)).splitlines()[1:]]
    assert rows == ["torch.export, wrong: `y` differs", "lifting, wrong: as torch.export", "a, failed", "b, failed"]
    finding = Finding("not-converted", "no exporter could convert the model", Span("net.onnx", 1))
    assert "tried" not in str(Result("refused", attempts=attempts, findings=(finding,)))


def test_many_inputs_are_cut() -> None:
    inputs = tuple(Port(f"x{number}", "float32", (2,)) for number in range(20))
    lines = str(Result("unchecked", inputs)).splitlines()
    assert lines[0] == "unchecked: model, never run against the model"
    assert sum(line.startswith("  input") for line in lines) == 13
    assert "  input    ... and 8 more" in lines
