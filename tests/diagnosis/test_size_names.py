"""How code at a place can name a size."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch

from anyshape.diagnosis.size_names import SizeNames, agree
from anyshape.sizes.notation import Expression, parse_expression
from anyshape.source.sites import Site

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
