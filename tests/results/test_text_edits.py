"""How a finding shows its edit."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyshape.results.finding import Finding
from anyshape.source.edits import Edit
from anyshape.source.placement import Change
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
