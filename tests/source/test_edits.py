"""Edits: what they make of a file, and what they leave alone."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from anyshape.errors import AnyshapeError
from anyshape.source import edits
from anyshape.source.edits import (
    Change,
    Edit,
    NotThereError,
    TextSlot,
    combined,
    in_order,
    offset_of,
    replaced,
    slots_in,
    slots_now,
    undone,
)

MODEL = """\
class Head:
    def forward(self, x):
        y = x.view(2, 8, 64)
        return y.sum(
            1,
            keepdim=True,
        )
"""
BATCH = Change(3, 20, 3, 21, "2", "x.shape[0]")
SEQ = Change(3, 23, 3, 24, "8", "x.shape[1]")
CALL = Change(
    4, 16, 7, 10, "y.sum(\n            1,\n            keepdim=True,\n        )", "y.mean(\n            1\n        )"
)


def _edit(path: object, *changes: Change, text: str = MODEL, **given: object) -> Edit:
    values = {"title": "take the size from `x`", "tried": "same result at batch = 2", "safe": True, **given}
    return Edit(str(path), text, changes, **values)


def _file(folder: Path, text: str = MODEL, **how: str) -> Path:
    path = folder / "model.py"
    path.write_text(text, encoding="utf-8", newline="", **how)
    return path


def test_source_is_the_whole_file_with_the_changes(tmp_path: Path) -> None:
    edit = _edit("model.py", SEQ, BATCH)
    assert edit.source == MODEL.replace("2, 8", "x.shape[0], x.shape[1]")


def test_a_change_that_does_not_fit_its_text_is_said() -> None:
    with pytest.raises(AnyshapeError) as caught:
        _ = _edit("model.py", replace(BATCH, old="3")).source
    assert str(caught.value) == "`model.py` has changed: `3` no longer stands at line 3; nothing was written"


def test_diff_is_what_patch_understands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = _file(tmp_path, MODEL.rstrip("\n"))
    edit = _edit(path, BATCH, CALL, text=MODEL.rstrip("\n"))
    assert edit.diff.startswith(
        "--- a/model.py\n+++ b/model.py\n@@ -1,7 +1,6 @@\n class Head:\n     def forward(self, x):\n"
        "-        y = x.view(2, 8, 64)\n-        return y.sum(\n-            1,\n"
    )
    subprocess.run(["git", "apply", "-"], input=edit.diff.encode(), cwd=tmp_path, check=True)
    assert path.read_text(encoding="utf-8") == edit.source


def test_diff_of_a_file_elsewhere_bears_its_name(tmp_path: Path) -> None:
    assert _edit(tmp_path / "model.py", BATCH).diff.startswith("--- a/model.py\n+++ b/model.py\n")
    assert _edit("package/model.py", BATCH).diff.startswith("--- a/package/model.py\n+++ b/package/model.py\n")


def test_dict_round_trip_gives_an_equal_edit() -> None:
    edit = _edit("model.py", CALL, BATCH, SEQ, safe=False)
    values = json.loads(json.dumps(edit.to_dict()))
    assert sorted(values) == ["changes", "diff", "path", "safe", "source", "title", "tried"]
    assert values["source"] == edit.source
    assert values["diff"] == edit.diff
    assert Edit.from_dict(values) == edit


def test_changed_lines_pair_old_and_new() -> None:
    first, last = MODEL.splitlines()[2], MODEL.splitlines()[5]
    edit = _edit("model.py", BATCH, Change(6, 13, 6, 25, "keepdim=True", "keepdim=False"))
    assert edit.changed_lines == (
        ("-", first),
        ("+", first.replace("2", "x.shape[0]")),
        ("-", last),
        ("+", last.replace("True", "False")),
    )


def test_changed_lines_of_unequal_number_stand_in_blocks() -> None:
    text = "y = f(\n    1,\n)\n"
    edit = _edit("model.py", Change(1, 5, 3, 2, "f(\n    1,\n)", "g(1)"), text=text)
    assert edit.changed_lines == (("-", "y = f("), ("-", "    1,"), ("-", ")"), ("+", "y = g(1)"))


def test_apply_touches_the_expressions_only(tmp_path: Path) -> None:
    text = "# né\r\n\tx = 2 ;y=8\nz = 'a\x0cb\u2028'\r\n"
    path = _file(tmp_path, text)
    edit = _edit(path, Change(2, 6, 2, 7, "2", "x.shape[\n0]"), text=path.read_text(encoding="utf-8"))
    assert edit.apply() is True
    assert path.read_bytes().decode() == text.replace("2 ;", "x.shape[\n0] ;")


def test_apply_ends_new_lines_as_the_file_does(tmp_path: Path) -> None:
    path = _file(tmp_path, MODEL.replace("\n", "\r\n"))
    _edit(path, CALL, BATCH).apply()
    assert path.read_bytes().decode() == _edit(path, CALL, BATCH).source.replace("\n", "\r\n")


def test_apply_keeps_the_byte_order_mark_and_the_cookie(tmp_path: Path) -> None:
    marked = tmp_path / "marked.py"
    marked.write_bytes(b"\xef\xbb\xbfn = 2\n")
    _edit(marked, Change(1, 5, 1, 6, "2", "len(x)"), text="n = 2\n").apply()
    assert marked.read_bytes() == b"\xef\xbb\xbfn = len(x)\n"
    latin = tmp_path / "latin.py"
    text = "# -*- coding: latin-1 -*-\ns = 'é'; n = 2\n"
    latin.write_bytes(text.encode("latin-1"))
    _edit(latin, Change(2, 14, 2, 15, "2", "ord('é')"), text=text).apply()
    assert latin.read_bytes() == text.replace("n = 2", "n = ord('é')").encode("latin-1")


def test_apply_refuses_what_the_encoding_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(b"# coding: latin-1\nn = 2\n")
    edit = _edit(path, Change(2, 5, 2, 6, "2", "'β'"), text="# coding: latin-1\nn = 2\n")
    with pytest.raises(AnyshapeError) as caught:
        edit.apply()
    assert str(caught.value) == "`model.py` is written in iso-8859-1, which has no `β`: nothing was written"
    assert path.read_bytes() == b"# coding: latin-1\nn = 2\n"


def test_apply_keeps_the_mode_and_follows_a_link(tmp_path: Path) -> None:
    path = _file(tmp_path)
    path.chmod(0o755)
    link = tmp_path / "link.py"
    link.symlink_to(path)
    _edit(link, BATCH).apply()
    assert path.stat().st_mode & 0o777 == 0o755
    assert link.is_symlink()
    assert path.read_text(encoding="utf-8") == _edit(path, BATCH).source
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.py", "model.py"]


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only the super-user gives files away")
def test_apply_keeps_the_owner(tmp_path: Path) -> None:
    path = _file(tmp_path)
    os.chown(path, 12, 34)
    _edit(path, BATCH).apply()
    assert (path.stat().st_uid, path.stat().st_gid) == (12, 34)


def test_a_failed_write_leaves_the_file_and_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(AnyshapeError) as caught:
        _edit(path, BATCH).apply()
    assert str(caught.value) == "`model.py` cannot be written: No space left on device"
    assert [one.name for one in tmp_path.iterdir()] == ["model.py"]
    assert path.read_text(encoding="utf-8") == MODEL


def test_a_read_only_file_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(AnyshapeError) as caught:
        _edit(path, BATCH).apply()
    assert str(caught.value) == "`model.py` cannot be written: it is read-only"
    assert path.read_text(encoding="utf-8") == MODEL


def test_apply_twice_changes_nothing(tmp_path: Path) -> None:
    path = _file(tmp_path)
    edit = _edit(path, BATCH, CALL)
    edit.apply()
    before = path.stat().st_mtime_ns
    assert edit.apply() is False
    assert path.stat().st_mtime_ns == before
    assert path.read_text(encoding="utf-8") == edit.source


@pytest.mark.parametrize(
    ("name", "shown"), [("<ipython-input-3-abc>", "In [3]"), ("/tmp/ipykernel_1/2.py", "In [?]"), ("In [4]", "In [4]")]
)
def test_a_notebook_cell_is_changed_by_hand(name: str, shown: str) -> None:
    edit = _edit(name, BATCH)
    with pytest.raises(AnyshapeError) as caught:
        edit.apply()
    assert str(caught.value) == f"`{shown}` is a notebook's cell: make the change at line 3 by hand"
    assert edit.is_in_cell
    assert edit.to_dict()["path"] == shown
    assert edit.diff.startswith(f"--- a/{shown}\n+++ b/{shown}\n")


def test_a_debugger_s_copy_of_a_cell_is_not_changed(tmp_path: Path) -> None:
    copy = tmp_path / "ipykernel_1" / "2.py"
    copy.parent.mkdir()
    copy.write_text(MODEL, encoding="utf-8")
    with pytest.raises(AnyshapeError, match="is a notebook's cell"):
        _edit(copy, BATCH).apply()
    assert copy.read_text(encoding="utf-8") == MODEL


def test_what_is_no_file_is_changed_by_hand() -> None:
    with pytest.raises(AnyshapeError) as caught:
        _edit("<string>", BATCH).apply()
    assert str(caught.value) == "`<string>` is not a file on disk: make the change at line 3 by hand"


def test_a_cell_s_new_text_has_its_magics_and_its_blank_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "typed_text", {"/tmp/ipykernel_1/2.py": f"\n%%capture\n{MODEL}!ls"}.get)
    edit = _edit("/tmp/ipykernel_1/2.py", BATCH)
    assert edit.typed_source == f"\n%%capture\n{edit.source}!ls"
    monkeypatch.setattr(edits, "typed_text", lambda _: "what is something else altogether")
    assert edit.typed_source == edit.source
    assert _edit("model.py", BATCH).typed_source == edit.source


def test_an_unreadable_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(b"n = '\xff'\n")
    with pytest.raises(
        AnyshapeError, match=r"^`model\.py` cannot be read, to change line 3: invalid or missing encoding"
    ):
        _edit(path, BATCH).apply()


# ---- a file that has changed since


def _apply_to(folder: Path, current: str, *changes: Change, text: str = MODEL) -> str:
    path = _file(folder, current)
    _edit(path, *changes, text=text).apply()
    return path.read_text(encoding="utf-8")


def test_a_change_follows_its_line(tmp_path: Path) -> None:
    now = "import torch\n\n" + MODEL
    assert _apply_to(tmp_path, now, BATCH, CALL) == "import torch\n\n" + _edit("", BATCH, CALL).source


def test_a_change_follows_its_place_on_a_line_that_was_touched(tmp_path: Path) -> None:
    now = MODEL.replace("y = x.view", "y = 2 * x.contiguous().view")
    assert _apply_to(tmp_path, now, BATCH) == now.replace("(2, 8", "(x.shape[0], 8")


def test_two_edits_of_one_line_are_made_one_after_the_other(tmp_path: Path) -> None:
    text = "y = x.view(2, 2) * 2\n"
    path = _file(tmp_path, text)
    first = _edit(path, Change(1, 12, 1, 13, "2", "x.shape[0]"), text=text)
    second = _edit(path, Change(1, 15, 1, 16, "2", "x.shape[1]"), text=text)
    for edit in (first, second, first, second):
        edit.apply()
    assert path.read_text(encoding="utf-8") == "y = x.view(x.shape[0], x.shape[1]) * 2\n"


def test_a_change_that_stands_already_is_left(tmp_path: Path) -> None:
    now = MODEL.replace("view(2", "view(x.shape[0]") + "# mine\n"
    assert _apply_to(tmp_path, now, BATCH, SEQ) == now.replace(" 8,", " x.shape[1],")
    assert _apply_to(tmp_path, now, BATCH) == now


@pytest.mark.parametrize(("old", "new"), [("x", "x[:n]"), ("x[:5]", "x"), ("x", "f(x)"), ("f(x)", "x")])
def test_what_contains_the_other_is_changed_once(tmp_path: Path, old: str, new: str) -> None:
    text, now = f"y = 1 + {old} * 3\n", f"y = 1 + {old} * 4\n"
    change = Change(1, 9, 1, 9 + len(old), old, new)
    once = _apply_to(tmp_path, now, change, text=text)
    assert once == f"y = 1 + {new} * 4\n"
    assert _apply_to(tmp_path, once, change, text=text) == once


def test_once_on_its_line_is_enough(tmp_path: Path) -> None:
    now = MODEL.replace("y = x.view(2, 8, 64)", "z = torch.reshape(x, [64, 8, 128, 2]).contiguous()")
    assert _apply_to(tmp_path, now, BATCH) == now.replace("128, 2]", "128, x.shape[0]]")


@pytest.mark.parametrize(
    "line", ["y = x.view(3, 8, 64)", "y = x.flatten()", "y = self.a2(x.b_2, 128)", "y = f(2)(g[2] or 2)"]
)
def test_what_is_gone_is_said_and_nothing_is_written(tmp_path: Path, line: str) -> None:
    now = MODEL.replace("y = x.view(2, 8, 64)", line).replace("True", "False")
    path = _file(tmp_path, now)
    with pytest.raises(AnyshapeError) as caught:
        _edit(path, Change(4, 16, 4, 21, "y.sum", "y.mean"), BATCH).apply()
    assert str(caught.value) == "`model.py` has changed: `2` no longer stands at line 3; nothing was written"
    assert path.read_text(encoding="utf-8") == now


def test_a_line_that_is_gone_is_said(tmp_path: Path) -> None:
    path = _file(tmp_path, "class Head:\n    pass\n")
    with pytest.raises(AnyshapeError) as caught:
        _edit(path, CALL).apply()
    assert str(caught.value) == "`model.py` has changed: `y.sum( ...` no longer stands at line 4; nothing was written"


def test_a_file_written_anew_is_not_followed(tmp_path: Path) -> None:
    path = _file(tmp_path, "\n".join(f"a{number} = {number}" for number in range(5000)))
    with pytest.raises(AnyshapeError, match="`2` no longer stands at line 3"):
        _edit(path, BATCH).apply()


# ---- several edits


def test_edits_of_one_file_are_combined() -> None:
    other = _edit("other.py", SEQ)
    first, second = _edit("model.py", BATCH), _edit("model.py", BATCH, SEQ, title="take both", safe=False)
    whole, last = combined([first, other, second, first])
    assert whole == Edit(
        "model.py", MODEL, (BATCH, SEQ), "take the size from `x`; take both", "same result at batch = 2", safe=False
    )
    assert last == other


def test_of_two_that_clash_the_first_stays_and_an_edit_is_never_halved() -> None:
    arguments = Change(3, 20, 3, 28, "2, 8, 64", "-1, 8, 64")
    first, second = _edit("model.py", BATCH), _edit("model.py", arguments, CALL)
    assert combined([first, second]) == [first]
    assert combined([second, first]) == [second]


def test_neighbours_do_not_clash() -> None:
    comma = Change(3, 21, 3, 22, ",", " ,")
    [edit] = combined([_edit("model.py", BATCH), _edit("model.py", comma)])
    assert "x.view(x.shape[0] , 8, 64)" in edit.source


# ---- any text

_PIECES = st.sampled_from(["x", "view", "2", "é", "日本", "\t", " ", "(", ")", ".", ",", "\n", "\n", "\x0c", "\u2028"])
_TEXTS = st.lists(_PIECES, min_size=1, max_size=40).map("".join)


@st.composite
def _edits(draw: st.DrawFn) -> Edit:
    text = draw(_TEXTS)
    ends = sorted(draw(st.sets(st.integers(0, len(text)), min_size=2, max_size=8)))
    changes = []
    for start, end in list(itertools.pairwise(ends))[::2]:
        line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
        end_line, end_column = text.count("\n", 0, end) + 1, end - text.rfind("\n", 0, end)
        changes.append(Change(line, column, end_line, end_column, text[start:end], draw(_TEXTS)))
    return _edit("model.py", *draw(st.permutations(changes)), text=text)


@given(_edits())
def test_any_edit_comes_back_from_its_dict(edit: Edit) -> None:
    assert Edit.from_dict(json.loads(json.dumps(edit.to_dict()))) == edit


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edit=_edits(), newline=st.sampled_from(["\n", "\r\n", "\r"]), mark=st.sampled_from(["", "\ufeff"]))
def test_any_edit_is_applied_and_undone(tmp_path: Path, edit: Edit, newline: str, mark: str) -> None:
    path = tmp_path / "model.py"
    path.write_bytes((mark + edit.original.replace("\n", newline)).encode())
    edit = replace(edit, path=str(path))
    assert edit.apply() is (edit.source != edit.original)
    # a text of one line does not tell how its lines would end
    assume("\n" in edit.original or "\n" not in edit.source)
    assert path.read_bytes() == (mark + edit.source.replace("\n", newline)).encode()
    assert edit.apply() is False


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edit=_edits(), added=st.integers(0, 3))
def test_any_edit_follows_lines_added_around_it(tmp_path: Path, edit: Edit, added: int) -> None:
    assume(edit.source != edit.original)
    path = tmp_path / "model.py"
    above, below = "# above\n" * added, "\n# below"
    path.write_text(above + edit.original + below, encoding="utf-8", newline="")
    replace(edit, path=str(path)).apply()
    assert path.read_bytes().decode() == above + edit.source + below


# ---- where a change belongs in a text that has changed since


TEXT = "def f(x):\n    y = x.view(3, 8)\n    return y + 3\n"
VIEW = Change(2, 16, 2, 17, "3", "x.shape[0]")
SUM = Change(3, 16, 3, 17, "3", "y.shape[0]")


def test_offsets_count_from_the_first_character() -> None:
    assert TEXT[offset_of(TEXT, 2, 16)] == "3"
    assert offset_of(TEXT, 1, 1) == 0
    assert offset_of(TEXT, 99, 1) == len(TEXT) + 1


def test_changes_are_made_and_undone_in_the_order_of_the_text() -> None:
    assert in_order([SUM, VIEW, SUM]) == [VIEW, SUM]
    slots = slots_in(TEXT, [SUM, VIEW])
    assert slots[0] == TextSlot(25, 26, "x.shape[0]")
    changed = replaced(TEXT, slots)
    assert changed == "def f(x):\n    y = x.view(x.shape[0], 8)\n    return y + y.shape[0]\n"
    assert undone(changed, [VIEW, SUM]) == TEXT


@pytest.mark.parametrize("changes", [[Change(2, 16, 2, 17, "4", "n")], [VIEW, Change(2, 15, 2, 17, "(3", "(n")]])
def test_what_does_not_stand_there_and_what_overlaps_is_refused(changes: list[Change]) -> None:
    with pytest.raises(NotThereError):
        slots_in(TEXT, changes)


@pytest.mark.parametrize(
    ("current", "result"),
    [
        (TEXT, "def f(x):\n    y = x.view(x.shape[0], 8)\n    return y + 3\n"),
        (f"import os\n\n{TEXT}", "import os\n\ndef f(x):\n    y = x.view(x.shape[0], 8)\n    return y + 3\n"),
        (TEXT.replace("y =", "rows ="), "def f(x):\n    rows = x.view(x.shape[0], 8)\n    return y + 3\n"),
        (TEXT.replace(", 8", ", 8, 1"), "def f(x):\n    y = x.view(x.shape[0], 8, 1)\n    return y + 3\n"),
    ],
    ids=["unchanged", "lines above", "a name before", "a number behind"],
)
def test_a_change_follows_its_expression(current: str, result: str) -> None:
    assert replaced(current, slots_now(TEXT, [VIEW], current)) == result


def test_what_stands_there_already_is_left() -> None:
    done = replaced(TEXT, slots_in(TEXT, [VIEW]))
    assert slots_now(TEXT, [VIEW], done) == []
    assert slots_now(TEXT, [VIEW], f"# more\n{done}") == []
    (slot,) = slots_now(TEXT, [VIEW, SUM], done)
    assert slot.new == SUM.new


def test_a_line_that_says_something_else_is_not_guessed_at() -> None:
    with pytest.raises(NotThereError) as raised:
        slots_now(TEXT, [VIEW], TEXT.replace("x.view(3, 8)", "x.view(33, 8)"))
    assert raised.value.change == VIEW
