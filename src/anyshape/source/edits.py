"""An edit: a change of the user's source that was tried before it is shown. Nothing is written before `apply`."""

from __future__ import annotations

import bisect
import difflib
import io
import itertools
import os
import re
import shutil
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from anyshape.errors import AnyshapeError
from anyshape.sizes import budgets
from anyshape.source.cells import cell_name, typed_text


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


@dataclass(frozen=True)
class Edit:
    """Changes of one file, and how they were tried."""

    path: str
    """The file as Python knows it: `co_filename`."""
    original: str
    """The file's text as it was read."""
    changes: tuple[Change, ...]
    title: str
    """What is done, in a few words: "take the size from `x`"."""
    tried: str
    """At which sizes it was run, and with what result."""
    safe: bool
    """Whether the code means the same as before; else the user decides."""

    @property
    def name(self) -> str:
        """The file as the user knows it: relative to the working directory, else without its folder; or the cell."""
        if (cell := cell_name(self.path)) is not None:
            return cell
        path = Path(self.path)
        if not path.is_absolute():
            return path.as_posix()
        return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.name

    @property
    def is_in_cell(self) -> bool:
        """Whether it is about a notebook's cell, which nobody but the user changes."""
        return cell_name(self.path) is not None

    @cached_property
    def source(self) -> str:
        """The whole file's new text."""
        try:
            return replaced(self.original, slots_in(self.original, self.changes))
        except NotThereError as error:
            raise self._not_there(error.change) from None

    @property
    def typed_source(self) -> str:
        """The new text to put in the place of the old: of a cell as it was typed, with its magics."""
        try:
            typed = typed_text(self.path)
            return self.source if typed is None else replaced(typed, slots_now(self.original, self.changes, typed))
        except NotThereError:
            return self.source

    @property
    def diff(self) -> str:
        """All that changes, as `patch -p1` and `git apply` understand it."""
        old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (self.original, self.source))
        lines = difflib.unified_diff(old, new, f"a/{self.name}", f"b/{self.name}")
        return "".join(one if one.endswith("\n") else f"{one}\n\\ No newline at end of file\n" for one in lines)

    @property
    def changed_lines(self) -> tuple[tuple[str, str], ...]:
        """What to show of it: `("-", old)` and `("+", new)`, line by line where one stands for one."""
        lines = difflib.unified_diff(self.original.split("\n"), self.source.split("\n"), n=0, lineterm="")
        shown: list[tuple[str, str]] = []
        for hunk in _hunks(list(lines)[2:]):
            olds, news = [line for line in hunk if line[0] == "-"], [line for line in hunk if line[0] == "+"]
            rows = [row for pair in zip(olds, news, strict=False) for row in pair]
            shown += [(row[0], row[1:].rstrip()) for row in (rows if len(olds) == len(news) else hunk)]
        return tuple(shown)

    def apply(self) -> bool:
        """Write the changes into the file, all or none; False where they stand there already.

        What else has changed in the file since it was read is kept.
        """
        if self.is_in_cell:  # a debugger may have put a copy of it at its path
            raise AnyshapeError(f"`{self.name}` is a notebook's cell: make the change at line {self._line} by hand")
        path = Path(self.path)
        if not path.is_file():
            raise AnyshapeError(f"`{self.path}` is not a file on disk: make the change at line {self._line} by hand")
        path = path.resolve()  # a link stays a link
        text, encoding = self._text_on_disk(path)
        changes = [replace(one, old=_lf_only(one.old), new=_lf_only(one.new)) for one in self.changes]
        try:
            slots = slots_now(_lf_only(self.original), changes, _lf_only(text))
        except NotThereError as error:
            raise self._not_there(error.change) from None
        if slots:
            self._write(path, replaced(text, _slots_as_written(text, slots)), encoding)
        return bool(slots)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        return {
            "path": self.name if self.is_in_cell else self.path,
            "changes": [asdict(change) for change in self.changes],
            "title": self.title,
            "tried": self.tried,
            "safe": self.safe,
            "source": self.source,
            "diff": self.diff,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Edit:
        """The edit that `to_dict` wrote."""
        changes = tuple(Change(**change) for change in values["changes"])
        original = undone(values["source"], changes)
        return cls(values["path"], original, changes, values["title"], values["tried"], values["safe"])

    @property
    def _line(self) -> int:
        return min((change.line for change in self.changes), default=1)

    def _not_there(self, change: Change) -> AnyshapeError:
        old, *more = change.old.split("\n")
        shown = f"{old} ...".strip() if more else old
        return AnyshapeError(
            f"`{self.name}` has changed: `{shown}` no longer stands at line {change.line}; nothing was written"
        )

    def _text_on_disk(self, path: Path) -> tuple[str, str]:
        """The file's text, its line ends as they are, and its encoding."""
        try:
            data = path.read_bytes()
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
            return data.decode(encoding), encoding
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            raise AnyshapeError(f"`{self.name}` cannot be read, to change line {self._line}: {error}") from error

    def _write(self, path: Path, text: str, encoding: str) -> None:
        try:
            _replace_file(path, text.encode(encoding))
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise AnyshapeError(
                f"`{self.name}` is written in {encoding}, which has no `{character}`: nothing was written"
            ) from error
        except OSError as error:
            raise AnyshapeError(f"`{self.name}` cannot be written: {error.strerror}") from error


def combined(edits: Iterable[Edit]) -> list[Edit]:
    """One edit for each file. What was changed twice alike is changed once; of two that clash, the first stays.

    An edit belongs together: one of whose changes clashes with an earlier edit is left out as a whole.
    """
    files: dict[tuple[str, str], list[Edit]] = {}
    for edit in edits:
        kept = files.setdefault((edit.path, edit.original), [])
        if not any(_clashes(one, other) for earlier in kept for one in earlier.changes for other in edit.changes):
            kept.append(edit)
    return [_one_edit(kept) for kept in files.values()]


def _clashes(one: Change, other: Change) -> bool:
    apart = (one.end_line, one.end_column) <= (other.line, other.column) or (
        (other.end_line, other.end_column) <= (one.line, one.column)
    )
    return one != other and not apart


def _one_edit(edits: Sequence[Edit]) -> Edit:
    return replace(
        edits[0],
        changes=tuple(dict.fromkeys(change for edit in edits for change in edit.changes)),
        title="; ".join(dict.fromkeys(edit.title for edit in edits)),
        tried="; ".join(dict.fromkeys(edit.tried for edit in edits if edit.tried)),
        safe=all(edit.safe for edit in edits),
    )


# ---- text


def _lf_only(text: str) -> str:
    """As Python reads it: every line ends alike."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _slots_as_written(text: str, slots: Sequence[TextSlot]) -> list[TextSlot]:
    """The same places where lines may end in two characters; what is put there ends its lines as its line does."""
    pairs = [match.start() - count for count, match in enumerate(re.finditer("\r\n", text))]
    written = []
    for slot in slots:
        start, end = (place + bisect.bisect_left(pairs, place) for place in slot[:2])
        line_end = re.compile("\r\n|\r|\n").search(text, start) or re.search("\r\n|\r|\n", text)
        written.append(TextSlot(start, end, slot.new.replace("\n", line_end.group() if line_end else "\n")))
    return written


def _hunks(lines: Iterable[str]) -> Iterator[list[str]]:
    hunks = itertools.groupby(lines, lambda line: line.startswith("@@"))
    return (list(hunk) for is_head, hunk in hunks if not is_head)


def _replace_file(path: Path, data: bytes) -> None:
    """The old file or the new one, never half of it."""
    if not os.access(path, os.W_OK):
        raise PermissionError(13, "it is read-only")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if (old := path.stat()).st_uid != Path(name).stat().st_uid:  # the super-user changes somebody else's file
            os.chown(name, old.st_uid, old.st_gid)
        shutil.copymode(path, name)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
