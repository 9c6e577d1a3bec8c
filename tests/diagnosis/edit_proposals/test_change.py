"""A proposal made for a changed text, moved back onto the text as it was."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from anyshape.diagnosis.causes import agree
from anyshape.diagnosis.edit_proposals.change import EditProposal, SizeNames, moved_back
from anyshape.sizes.notation import Expression, parse_expression
from anyshape.source.edits import Change
from anyshape.source.sites import Site, SourceReading
from anyshape.source.spans import Span, shown_path
from anyshape.source.syntax import Source

OLD = "y = f(3, 8) + g(3)\n"
NEW = "y = f(x.shape[0], 8) + g(3)\n"
FIRST = Change(1, 7, 1, 8, "3", "x.shape[0]")


def _proposal(path: Path, text: str, *changes: Change, span: Span | None = None) -> EditProposal:
    frame = sys._getframe()
    tree = ast.parse(text)
    reading = SourceReading(Site(frame.f_code, 0, 1, {}, {}), Source(str(path), text, tree), tree.body[0])
    return EditProposal(reading, changes, "change it", span=span)


def test_columns_lose_what_was_put_in_front_of_them(tmp_path: Path) -> None:
    standing = _proposal(tmp_path / "net.py", OLD, FIRST)
    place = Span("net.py", 1, NEW.index("3") + 1)
    later = _proposal(tmp_path / "net.py", NEW, Change(1, 26, 1, 27, "3", "n"), span=place)
    assert NEW[25] == "3"
    (change,) = later.onto([standing]).changes
    assert (change.column, change.end_column) == (17, 18)
    assert OLD[16] == "3"
    assert later.onto([standing]).text == OLD
    assert later.onto([]) is later


def test_a_proposal_of_another_file_moves_nothing(tmp_path: Path) -> None:
    later = _proposal(tmp_path / "net.py", NEW, Change(1, 26, 1, 27, "3", "n"))
    assert later.onto([_proposal(tmp_path / "other.py", OLD, FIRST)]) is later


def test_a_place_moves_back_with_its_end(tmp_path: Path) -> None:
    standing = [_proposal(tmp_path / "net.py", OLD, FIRST)]
    span = Span(shown_path(str(tmp_path / "net.py")), 1, 26, 1, 27)
    assert moved_back(span, standing) == replace(span, column=17, end_column=18)
    assert moved_back(replace(span, line=2, end_line=2), standing).column == 26
    assert moved_back(replace(span, end_column=None), standing).end_column is None


# ---- how code at a site can name a size


SIZES = {5: parse_expression("n"), 3: parse_expression("m"), 15: parse_expression("n * m")}


def _in_dims(size: Any) -> Expression | None:
    return SIZES.get(size) if type(size) is int else None


def _names(first: tuple[str, ...] = (), **names: Any) -> SizeNames:
    frame = sys._getframe()
    return SizeNames(Site(frame.f_code, frame.f_lasti, frame.f_lineno, names, {}), _in_dims, first)


def test_a_size_is_an_axis_a_name_or_an_entry() -> None:
    names = _names(x=torch.zeros(5, 3), count=5, state={"h": torch.zeros(3)}, pair=[torch.zeros(5)])
    assert names.texts(parse_expression("n")) == ["count", "x.shape[0]", "pair[0].shape[0]"]
    assert names.texts(parse_expression("m")) == ["x.shape[1]", 'state["h"].shape[0]']


def test_names_of_the_expression_itself_come_first() -> None:
    names = _names(("y",), x=torch.zeros(5), y=torch.zeros(5))
    assert names.texts(parse_expression("n")) == ["y.shape[0]", "x.shape[0]"]


def test_what_stands_on_no_axis_is_put_together() -> None:
    names = _names(x=torch.zeros(5, 3))
    assert names.texts(parse_expression("2 * n + m")) == ["2 * x.shape[0] + x.shape[1]"]
    assert names.texts(parse_expression("2 * k")) == []
    assert names.dims_in("2 * x.shape[0] + x.shape[1]") == ["n", "m"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("n * m", "m * n", True),
        ("2 * (n + 1)", "2 * n + 2", True),
        ("n", "m", False),
        ("n + m", "n * m", False),
        ("n // (n - 5)", "n // (n - 5)", True),
    ],
)
def test_expressions_agree_however_they_are_written(one: str, other: str, same: bool) -> None:
    assert agree(parse_expression(one), parse_expression(other)) is same
