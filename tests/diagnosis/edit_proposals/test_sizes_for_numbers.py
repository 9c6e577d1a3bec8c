"""Numbers replaced by sizes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from anyshape.diagnosis.edit_proposals.change import EditProposal, Knowledge, names_in
from anyshape.diagnosis.edit_proposals.sizes_for_numbers import numbers_in, of_loops, of_sizes, of_wants
from anyshape.source.sites import SourceReading, read, site_of_stack
from tests.diagnosis.traced import seen_in, shown


class Zeros(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.zeros(3, 4)


class Square(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x @ torch.ones(5, 5).tril(5)


class Product(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(15, 4) + 1


class Loop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        rows = [x[:, i] * 2 for i in range(5)]
        return torch.stack(rows, 1)


def _made(
    make: Callable[..., Iterable[EditProposal]], model: nn.Module, x: Tensor, dims: str, kind: str = "number"
) -> list[EditProposal]:
    causes, known = seen_in(model, (x,), {"x": dims})
    cause = next(one for one in causes if one.kind == kind)
    reading = read(cause.site)
    assert reading is not None
    return list(make(cause, reading, known))


def test_a_wanted_size_stands_for_its_number_and_the_tensor_makes_the_new_one() -> None:
    first, *_ = _made(of_wants, Zeros(), torch.randn(3, 4), "n 4")
    assert shown(first) == "torch.zeros -> x.new_zeros; 3 -> x.shape[0]"
    assert (first.title, first.dims, first.safe) == ("take the size from `x`", ("n",), True)


def test_of_a_square_both_sides_are_meant_and_places_beside_it_too() -> None:
    first, *_ = _made(of_wants, Square(), torch.randn(2, 5), "n m")
    assert shown(first).count("5 -> x.shape[1]") == 3


def test_a_number_may_be_a_product_of_sizes_or_inferred() -> None:
    made = [shown(one) for one in _made(of_sizes, Product(), torch.randn(3, 5, 4), "n m 4")]
    assert "15 -> -1" in made
    assert "15 -> x.shape[0] * x.shape[1]" in made
    assert "15 -> 5 * x.shape[0]" in made


def test_the_range_of_a_loop_is_found_from_its_index() -> None:
    first, *_ = _made(of_loops, Loop(), torch.randn(3, 5, 4), "n m 4", "loop")
    assert shown(first) == "5 -> x.shape[1]"
    assert first.span is not None


# ---- the numbers of an expression, where they were written


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
