"""A proposal: changes of one file that may free a dim, and what proposals are made from."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from anyshape.diagnosis.causes import agree
from anyshape.sizes import budgets
from anyshape.sizes.notation import Expression
from anyshape.source.edits import Change
from anyshape.source.sites import Site, SourceReading, names_at
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


# ---- how code at a site can name a size: `x.shape[1]`, a name that holds it, or arithmetic on these


def names_in(node: ast.AST) -> list[str]:
    """The names in an expression, as they are written from left to right."""
    found = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    return [one.id for one in sorted(found, key=lambda one: (one.lineno, one.col_offset))]


@dataclass(frozen=True)
class Nameable:
    """A size that varies, and how the code at a site would write it."""

    text: str
    expression: Expression
    owner: str
    """The tensor it is taken from; empty for a name that holds the size itself."""


class SizeNames:
    """The sizes that can be named at a site; `first` are the names that stand in the expression itself."""

    def __init__(self, site: Site, in_dims: Callable[[Any], Expression | None], first: Sequence[str] = ()) -> None:
        found = list(_nameable_sizes(names_at(site), in_dims))
        found.sort(key=lambda one: first.index(one.owner) if one.owner in first else len(first))
        self.all = tuple(found)

    def texts(self, expression: Expression) -> list[str]:
        """Ways to write a size: as it stands on an axis, else put together from axes."""
        direct = [one.text for one in self.all if agree(one.expression, expression)]
        if not direct and (composed := self._text_of_axes(expression)) is not None:
            direct = [composed]
        return list(dict.fromkeys(direct))

    def dims_in(self, text: str) -> list[str]:
        """The dims that a text made of these sizes speaks of."""
        return [name for one in self.all if one.text in text for name in one.expression.names]

    def _text_of_axes(self, expression: Expression) -> str | None:
        # the first that names a dim stays: they are in order
        named = {one.expression.text: one.text for one in reversed(self.all)}
        if any(dim not in named for dim in expression.names):
            return None
        return re.sub(r"[A-Za-z_]\w*", lambda found: named.get(found[0], found[0]), expression.text)


def _nameable_sizes(names: Mapping[str, Any], in_dims: Callable[[Any], Expression | None]) -> Iterator[Nameable]:
    tensors = list(_tensors_by_name(names))
    for name, value in names.items():
        if (expression := in_dims(value)) is not None:
            yield Nameable(name, expression, "")
    for text, tensor in tensors:
        for axis, size in enumerate(tensor.shape):
            if (expression := in_dims(size)) is not None:
                yield Nameable(f"{text}.shape[{axis}]", expression, text)


def _tensors_by_name(names: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors under a name, and one step below it."""
    for name, value in names.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, Mapping):
            yield from ((f'{name}["{k}"]', v) for k, v in value.items() if isinstance(v, torch.Tensor))
        elif isinstance(value, (tuple, list)) and len(value) <= budgets.FEW_SIZE_NAMES:
            yield from ((f"{name}[{i}]", v) for i, v in enumerate(value) if isinstance(v, torch.Tensor))
