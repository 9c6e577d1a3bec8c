"""Where the numbers of an expression were written: in it, where a name got them, or by the caller."""

from __future__ import annotations

import ast
import sys
from typing import Any

import torch

from anyshape.diagnosis.edit_proposals.change import Knowledge
from anyshape.diagnosis.edit_proposals.written_numbers import names_in, numbers_in
from anyshape.source.sites import SourceReading, read, site_of_stack

KNOWN = Knowledge(lambda _: None, {}, lambda _: None, frozenset(), lambda _: None)


def at(*_: Any) -> SourceReading:
    site = site_of_stack(sys._getframe(1))
    assert site is not None
    reading = read(site)
    assert reading is not None
    return reading


def _lines(reading: SourceReading) -> list[list[tuple[str, int, int]]]:
    """For each way: the text, the value, and how many lines above it was written."""
    here = reading.site.line
    return [
        [(one.reading.text_of(one.node), one.value, here - one.node.lineno) for one in way]
        for way in numbers_in(reading, KNOWN)
    ]


def test_a_number_in_its_place_has_one_way() -> None:
    assert _lines(at(3, 8)) == [[("3", 3, 0), ("8", 8, 0)]]


def test_a_name_has_the_place_where_it_got_the_number_too() -> None:
    n = 3
    assert _lines(at(n, 8)) == [[("3", 3, 1), ("8", 8, 0)], [("n", 3, 0), ("8", 8, 0)]]


def test_a_name_that_is_given_twice_stays_where_it_is_used() -> None:
    n = 2
    n = n + 1
    assert _lines(at(n)) == [[("n", 3, 0)]]


def test_a_tuple_under_a_name_is_read_where_it_was_written() -> None:
    shape = (3, 8)
    assert _lines(at(shape))[0] == [("3", 3, 1), ("8", 8, 1)]


def _called(n: int, *, m: int = 0) -> SourceReading:
    return at(n, m)


def test_an_argument_is_found_at_the_call() -> None:
    written, used = numbers_in(_called(3, m=8), KNOWN)
    assert [(one.reading.text_of(one.node), one.value) for one in written] == [("3", 3), ("8", 8)]
    assert [one.reading.text_of(one.node) for one in used] == ["n", "m"]
    assert written[0].reading.site.code.co_name == "test_an_argument_is_found_at_the_call"


def test_names_come_from_left_to_right() -> None:
    assert names_in(ast.parse("b.view(a, c(b))", mode="eval")) == ["b", "a", "c", "b"]


def test_names_that_come_later_are_not_known_where_a_number_was_written() -> None:
    n = 3
    x = torch.zeros(3)
    (way, _) = numbers_in(at(n), KNOWN)
    assert "x" not in way[0].reading.site.names
    assert x.shape[0] == n
