"""Where a change belongs in a text that has changed since."""

from __future__ import annotations

import pytest

from anyshape.source.placement import (
    Change,
    NotThereError,
    TextSlot,
    in_order,
    offset_of,
    replaced,
    slots_in,
    slots_now,
    undone,
)

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
