"""Places that do not move alone, with the fewest that must move along."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.model.proposal.moves import ProbingGround
from anyshape.model.proposal.partners import find_moves, find_partners
from anyshape.model.proposal.probe import RunBudget


def ground(model: Any, *args: Any, most: int = 400) -> ProbingGround:
    target = resolve_target(model)
    return ProbingGround.of(target, bind_call(target, args), budget=RunBudget(most), seed=0)


def added(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def shifted(x: Tensor, y: Tensor) -> Tensor:
    return x[:, None] + y[1:]


def joined(past: Tensor, x: Tensor, mask: Tensor) -> Tensor:
    return torch.cat([past, x]) * mask


def doubled(x: Tensor, y: Tensor) -> Tensor:
    return x + y.reshape(-1, 2).sum(1)


@pytest.mark.parametrize(
    ("model", "args", "moves"),
    [
        (added, (torch.randn(3, 5), torch.randn(3, 5)), [{("x", 0): 1, ("y", 0): 1}, {("x", 1): 1, ("y", 1): 1}]),
        (doubled, (torch.randn(3), torch.randn(6)), [{("x", 0): 1, ("y", 0): 2}]),
        (
            joined,
            (torch.randn(4), torch.randn(3), torch.randn(7)),
            [{("past", 0): 1, ("mask", 0): 1}, {("x", 0): 1, ("mask", 0): 1}],
        ),
    ],
)
def test_every_move_has_the_places_that_it_needs_and_no_others(model: Any, args: Any, moves: Any):
    found = find_moves(ground(model, *args))
    assert [dict(move.steps) for move in found] == moves
    assert {move.basis for move in found} == {"move together"}


def test_a_place_that_moves_alone_needs_no_partner_and_a_static_one_is_not_asked():
    found = find_moves(ground(shifted, torch.randn(3), torch.randn(6)))
    assert [(dict(move.steps), move.basis) for move in found] == [
        ({("x", 0): 1}, "moves alone"), ({("y", 0): 1}, "moves alone"),
    ]  # fmt: skip
    assert [dict(move.steps) for move in find_moves(ground(shifted, torch.randn(3), torch.randn(6)), [("x", 0)])] == [
        {("y", 0): 1}
    ]


def test_what_a_weight_fixes_moves_with_nothing():
    moves = find_moves(ground(nn.Linear(5, 2), torch.randn(3, 5)))
    assert [dict(move.steps) for move in moves] == [{("input", 0): 1}]


def test_without_a_budget_no_partner_is_found():
    found = ground(added, torch.randn(3, 5), torch.randn(3, 5), most=1)
    assert find_partners(found, ("x", 0), found.places) is None
