"""A finding is a value: it compares, goes to JSON and back, and knows which edits mend all."""

from __future__ import annotations

from anyshape.results.finding import Finding, Level, usable_edits
from anyshape.source.edits import Change, Edit
from anyshape.source.spans import Span

TEXT = "a = 1\nb = 2\n"
FINDING = Finding(
    "pinned-dim", "`batch` cannot vary", Span("net.py", 3, 9, 3, 12, "Net.forward"), "here", ("a note",), ("a help",),
    dims=("batch",), breaks_at={"batch": 1},
)  # fmt: skip


def _edit(line: int, new: str, *, path: str = "net.py", safe: bool = True) -> Edit:
    old = TEXT.splitlines()[line - 1][-1]
    return Edit(path, TEXT, (Change(line, 5, line, 6, old, new),), "change it", "it runs", safe)


def _with(edit: Edit | None, level: Level = "error") -> Finding:
    return Finding("pinned-dim", "message", Span("net.py", 1), level=level, edit=edit)


def test_a_finding_comes_back_from_json() -> None:
    assert Finding.from_json(FINDING.to_json()) == FINDING
    again = Finding.from_dict(_with(_edit(1, "n")).to_dict())
    assert again.edit == _edit(1, "n")


def test_the_headline_stands_alone() -> None:
    assert FINDING.headline == "error[pinned-dim]: `batch` cannot vary"
    assert str(FINDING).startswith(f"{FINDING.headline}\n  --> net.py:3:9 in Net.forward")


def test_edits_are_usable_where_every_error_has_a_safe_one() -> None:
    (edit,) = usable_edits([_with(_edit(1, "n")), _with(_edit(2, "m")), _with(None, "warning")])
    assert edit.source == "a = n\nb = m\n"
    assert len(usable_edits([_with(_edit(1, "n")), _with(_edit(1, "n", path="other.py"))])) == 2


def test_one_error_without_a_safe_edit_makes_the_others_useless() -> None:
    assert usable_edits([_with(_edit(1, "n")), _with(None)]) == []
    assert usable_edits([_with(_edit(1, "n")), _with(_edit(2, "m", safe=False))]) == []
    assert usable_edits([_with(_edit(1, "n"), "warning")]) == []
