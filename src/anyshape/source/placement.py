"""Where a change belongs in a text that may have changed since: a line or two added above, another edit made before.

Lines are followed by comparing the two texts, words within a line that was touched likewise. Whether the change was
made already is told by following what it would have made of the text.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from anyshape.sizes import budgets


@dataclass(frozen=True)
class Change:
    """One expression of a file replaced by another; lines and columns count from 1, columns in characters.

    `end_column` is the one after the last character.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    old: str
    new: str


class NotThereError(Exception):
    """The old text of a change does not stand where it was, nor does the new one."""

    def __init__(self, change: Change) -> None:
        super().__init__(change)
        self.change = change


class TextSlot(NamedTuple):
    """Characters of a text that give way to others."""

    start: int
    end: int
    new: str


def offset_of(text: str, line: int, column: int) -> int:
    """The index of a character; behind the text where there is no such line."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
        if not start:
            return len(text) + 1
    return start + column - 1


def in_order(changes: Sequence[Change]) -> list[Change]:
    return sorted(dict.fromkeys(changes), key=lambda change: (change.line, change.column, change.end_line))


def slots_in(text: str, changes: Sequence[Change]) -> list[TextSlot]:
    """Where changes stand in the text that they were made for."""
    slots: list[TextSlot] = []
    for change in in_order(changes):
        start, end = (offset_of(text, change.line, change.column), offset_of(text, change.end_line, change.end_column))
        if text[start:end] != change.old or (slots and start < slots[-1].end):
            raise NotThereError(change)
        slots.append(TextSlot(start, end, change.new))
    return slots


def replaced(text: str, slots: Sequence[TextSlot]) -> str:
    """The text with other characters in these places; slots are in order and do not overlap."""
    for slot in reversed(slots):
        text = text[: slot.start] + slot.new + text[slot.end :]
    return text


def undone(text: str, changes: Sequence[Change]) -> str:
    """The text before the changes: up to the next one everything stands at its old place again."""
    for change in in_order(changes):
        start = offset_of(text, change.line, change.column)
        text = text[:start] + change.old + text[start + len(change.new) :]
    return text


def slots_now(original: str, changes: Sequence[Change], current: str) -> list[TextSlot]:
    """Where the changes of `original` are still to be made in `current`; those that stand there already are left."""
    before = slots_in(original, changes)
    result = replaced(original, before)
    if current in (result, original):
        return [] if current == result else before
    follow_old, follow_new = _Alignment(original, current), _Alignment(result, current)
    slots, shift = [], 0
    for change, slot in zip(in_order(changes), before, strict=True):
        found = follow_old.find(slot.start, slot.end)
        done = follow_new.find(slot.start + shift, slot.start + shift + len(slot.new))
        shift += len(slot.new) - (slot.end - slot.start)
        place = _place_to_change(change, found, done, current)
        if place is not None:
            slots.append(TextSlot(place, place + len(change.old), change.new))
    return slots


class _Found(NamedTuple):
    """What became of some characters: where they are now, if they are, and how alike their surroundings are."""

    place: int | None
    likeness: float
    surroundings: tuple[int, int]


def _place_to_change(change: Change, old: _Found, new: _Found, current: str) -> int | None:
    """Where the old text is to be replaced; None where the new one stands already."""
    is_done = new.place is not None and bool(change.new)
    if old.place is not None and not (is_done and new.likeness > old.likeness):
        return old.place
    if is_done:
        return None
    return _on_its_line(change, current, *old.surroundings)


def _on_its_line(change: Change, current: str, start: int, end: int) -> int | None:
    """The one place on its line where the old text stands, wherever that is."""
    olds, news = _occurrences(change.old, current[start:end]), _occurrences(change.new, current[start:end])
    if news and (not olds or (len(olds) == len(news) == 1 and change.old in change.new)):
        return None
    if len(olds) != 1 or news:
        raise NotThereError(change)
    return start + olds[0]


def _occurrences(expression: str, text: str) -> list[int]:
    """Where an expression stands as a whole: `2` is not in `128`, nor `x` in `self.x`."""
    if not expression:
        return []
    whole = ("(?<![\\w.])" if expression[0].isalnum() else "") + re.escape(expression) + r"(?!\w|\.\d)"
    return [match.start() for match in re.finditer(whole, text)]


class _Alignment:
    """How one text became another, line by line."""

    def __init__(self, text: str, other: str) -> None:
        self._text, self._other = text, other
        lines, other_lines = text.split("\n"), other.split("\n")
        self._starts, self._other_starts = (_starts(f"{line}\n" for line in one) for one in (lines, other_lines))
        self._steps = difflib.SequenceMatcher(None, lines, other_lines, autojunk=False).get_opcodes()

    def find(self, start: int, end: int) -> _Found:
        """What became of `text[start:end]`."""
        first, last = self._text.count("\n", 0, start), self._text.count("\n", 0, end)
        steps = [step for step in self._steps if step[1] <= last and step[2] > first]
        here, there = _from_line(steps[0], first), _to_line(steps[-1], last)
        a, b = self._starts[here[0]], self._starts[there[0]] - 1
        c, d = self._other_starts[here[1]], max(self._other_starts[here[1]], self._other_starts[there[1]] - 1)
        text, other = self._text[a:b], self._other[c:d]
        if text == other:
            return _Found(start - a + c, 1.0, (c, d))
        if len(text) + len(other) > budgets.MOST_CHARACTERS_COMPARED:
            return _Found(None, 0.0, (c, c))
        place, likeness = _follow_words(text, other, start - a, end - a)
        return _Found(None if place is None else place + c, likeness, (c, d))


_Step = tuple[str, int, int, int, int]


def _from_line(step: _Step, line: int) -> tuple[int, int]:
    """The first line, here and there, of what is to be compared."""
    kind, i, _, j, _ = step
    return (line, j + line - i) if kind == "equal" else (i, j)


def _to_line(step: _Step, line: int) -> tuple[int, int]:
    """The line behind it."""
    kind, i, i_end, j, j_end = step
    return (line + 1, j + line + 1 - i) if kind == "equal" else (i_end, j_end)


def _follow_words(text: str, other: str, start: int, end: int) -> tuple[int | None, float]:
    """Where `text[start:end]` is in the other text, and how alike the two are."""
    words, others = re.findall(r"\w+|\W", text), re.findall(r"\w+|\W", other)
    at, other_at = _starts(words), _starts(others)
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    for block in matcher.get_matching_blocks():
        first, last = at[block.a], at[block.a + block.size]
        # its neighbours are the same still: a number alone is easily found somewhere
        if (first < start or start == 0 == first) and (end < last or end == len(text) == last):
            return start - at[block.a] + other_at[block.b], matcher.ratio()
    return None, matcher.ratio()


def _starts(parts: Iterable[str]) -> list[int]:
    """Where each part of a text begins, and where the text ends."""
    return list(itertools.accumulate(map(len, parts), initial=0))
