"""A proposal: changes of one file that may free a dim, and what proposals are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from anyshape.sizes.notation import Expression
from anyshape.source.edits import Change
from anyshape.source.sites import SourceReading
from anyshape.source.spans import Span, shown_path
from anyshape.torchkit.recorder import Call


@dataclass(frozen=True)
class EditProposal:
    """Changes of one file that may free a dim."""

    reading: SourceReading
    changes: tuple[Change, ...]
    title: str
    safe: bool = True
    span: Span | None = None
    """Where the number was written, if not where it is used."""
    dims: tuple[str, ...] = ()
    """The dims that numbers were replaced by."""
    is_multiple: bool = False
    """Whether a number was replaced by a multiple of a size."""
    original: str = ""
    """The file's text that the changes are of, where it is not the one that was read."""

    @property
    def filename(self) -> str:
        return self.reading.source.filename

    @property
    def text(self) -> str:
        return self.original or self.reading.source.text

    def onto(self, standing: Iterable[EditProposal]) -> EditProposal:
        """The same for the text as it was before other proposals of the file were put in place."""
        before = [one for one in standing if one.filename == self.filename]
        if not before:
            return self
        changes = [change for one in before for change in one.changes]
        moved = (
            replace(
                one,
                column=_column_before(one.line, one.column, changes),
                end_column=_column_before(one.end_line, one.end_column, changes),
            )
            for one in self.changes
        )
        span = None if self.span is None else moved_back(self.span, before)
        return replace(self, original=before[0].text, changes=tuple(moved), span=span)


def _column_before(line: int, column: int, changes: Iterable[Change]) -> int:
    """A column without what changes on the same line have added in front of it."""
    for one in sorted(changes, key=lambda one: one.column):
        # left to right, so each is compared with where it stands once those before it are undone
        column -= len(one.new) - len(one.old) if one.line == line and one.column < column else 0
    return column


def moved_back(span: Span, standing: Iterable[EditProposal]) -> Span:
    """A place of the changed text in the text as it was."""
    changes = [change for one in standing if shown_path(one.filename) == span.path for change in one.changes]
    end = None
    if span.end_column is not None:
        end = _column_before(span.end_line or span.line, span.end_column, changes)
    return replace(span, column=_column_before(span.line, span.column, changes), end_column=end)


@dataclass(frozen=True)
class Knowledge:
    """What proposals are made from."""

    in_dims: Callable[[Any], Expression | None]
    """A symbolic size as an expression in dims."""
    example: Mapping[str, int]
    name_of: Callable[[Any], str | None]
    """The name of a tensor that the module holds."""
    batches: frozenset[str]
    """Dims that are named like a batch."""
    maker_of: Callable[[torch.Tensor], Call | None]
    """The call that made a tensor."""
