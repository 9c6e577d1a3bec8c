"""Numbers replaced by sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from anyshape.diagnosis.edit_proposals.change import EditProposal
from anyshape.diagnosis.edit_proposals.sizes_for_numbers import of_loops, of_sizes, of_wants
from anyshape.source.sites import read
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
