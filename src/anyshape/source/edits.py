"""An edit: a change of the user's source that was tried before it is shown. Nothing is written before `apply`."""

from __future__ import annotations

import bisect
import difflib
import io
import os
import re
import shutil
import tempfile
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from anyshape.errors import AnyshapeError
from anyshape.source.placement import Change, NotThereError, TextSlot, replaced, slots_in, slots_now, undone


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
        """The file as the user knows it: relative to the working directory, else without its folder."""
        path = Path(self.path)
        if not path.is_absolute():
            return path.as_posix()
        return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.name

    @cached_property
    def source(self) -> str:
        """The whole file's new text."""
        try:
            return replaced(self.original, slots_in(self.original, self.changes))
        except NotThereError as error:
            raise self._not_there(error.change) from None

    @property
    def diff(self) -> str:
        """All that changes, as `patch -p1` and `git apply` understand it."""
        return "".join(_unified_diff(_lines_with_ends(self.original), _lines_with_ends(self.source), self.name))

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
        path = Path(self.path)
        if not path.is_file():
            raise AnyshapeError(f"`{self.path}` is not a file on disk: make the change at line {self._line} by hand")
        path = path.resolve()  # a link stays a link
        text, encoding = self._text_on_disk(path)
        try:
            slots = slots_now(_lf_only(self.original), [_lf_only_change(one) for one in self.changes], _lf_only(text))
        except NotThereError as error:
            raise self._not_there(error.change) from None
        if slots:
            self._write(path, self._bytes_in(replaced(text, _slots_as_written(text, slots)), encoding))
        return bool(slots)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        return {
            "path": self.path,
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

    def _bytes_in(self, text: str, encoding: str) -> bytes:
        try:
            return text.encode(encoding)
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise AnyshapeError(
                f"`{self.name}` is written in {encoding}, which has no `{character}`: nothing was written"
            ) from error

    def _write(self, path: Path, data: bytes) -> None:
        try:
            _replace_file(path, data)
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


def _lf_only_change(change: Change) -> Change:
    return replace(change, old=_lf_only(change.old), new=_lf_only(change.new))


def _slots_as_written(text: str, slots: Sequence[TextSlot]) -> list[TextSlot]:
    """The same places where lines may end in two characters; what is put there ends its lines as its line does."""
    pairs = [match.start() - count for count, match in enumerate(re.finditer("\r\n", text))]
    written = []
    for slot in slots:
        start, end = (place + bisect.bisect_left(pairs, place) for place in slot[:2])
        line_end = re.compile("\r\n|\r|\n").search(text, start) or re.search("\r\n|\r|\n", text)
        written.append(TextSlot(start, end, slot.new.replace("\n", line_end.group() if line_end else "\n")))
    return written


def _lines_with_ends(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _unified_diff(old: list[str], new: list[str], name: str) -> Iterable[str]:
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _hunks(lines: Sequence[str]) -> Iterable[list[str]]:
    hunk: list[str] = []
    for line in lines:
        if line.startswith("@@"):
            yield hunk
            hunk = []
        else:
            hunk.append(line)
    yield hunk


def _replace_file(path: Path, data: bytes) -> None:
    """The old file or the new one, never half of it."""
    if not os.access(path, os.W_OK):
        raise PermissionError(13, "it is read-only")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        shutil.copymode(path, name)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
