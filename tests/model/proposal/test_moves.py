"""Moves of one place, at an example whose sizes tell enough."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.model.proposal.moves import (
    ProbingGround,
    bundles,
    enlarged_call,
    find_moves,
    find_partners,
    is_at_its_smallest,
    shrunk_call,
    side_of_square,
    spread,
    step_of,
)
from anyshape.model.proposal.probe import Prober, RunBudget


def ground(model: Any, *args: Any, most: int = 400) -> ProbingGround:
    target = resolve_target(model)
    return ProbingGround.of(target, bind_call(target, args), budget=RunBudget(most))


def prober(model: Any, *args: Any) -> Prober:
    target = resolve_target(model)
    return Prober(target, bind_call(target, args), budget=RunBudget(400))


def windows(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0], -1, 4).mean(-1)


def grid(x: Tensor) -> Tensor:
    side = int(x.shape[1] ** 0.5)
    return x.reshape(x.shape[0], side, side).sum(-1)


@pytest.mark.parametrize(
    ("model", "shape", "axis", "step"),
    [
        (nn.ReLU(), (3, 5), 0, 1),
        (windows, (3, 8), 1, 4),
        (windows, (3, 8), 0, 1),
        (nn.Linear(5, 2), (3, 5), 1, None),
        (grid, (3, 16), 1, None),
    ],
)
def test_the_step_of_a_place_that_moves_alone(model: Any, shape: tuple[int, ...], axis: int, step: int | None):
    found = ground(model, torch.randn(shape))
    assert step_of(found, (next(iter(found.bundled))[0], axis)) == step


def test_an_axis_that_a_weight_fixes_is_remembered():
    found = ground(nn.Linear(5, 2), torch.randn(3, 5))
    step_of(found, ("input", 1))
    assert found.fixed == {("input", 1)}


def test_the_side_of_a_grid_of_tokens_is_found():
    assert side_of_square(ground(grid, torch.randn(3, 25)), ("x", 1)) == 5
    assert side_of_square(ground(windows, torch.randn(3, 16)), ("x", 1)) is None


def test_what_grows_but_does_not_shrink_is_at_its_smallest_if_an_output_shows_it():
    def unfolded(x: Tensor) -> Tensor:
        return x.unfold(1, 5, 1)

    def read(x: Tensor) -> Tensor:
        return x[:, 4]

    for model, expected in ((unfolded, True), (read, False)):
        found = ground(model, torch.randn(3, 5))
        assert step_of(found, ("x", 1)) is None
        assert is_at_its_smallest(found, ("x", 1)) is expected


# ---- bundles


def test_the_layers_of_a_cache_are_one_bundle_and_its_parts_are_not_others():
    target = resolve_target(lambda past, x: x)
    cache = [{"key": torch.zeros(2, 5), "value": torch.zeros(2, 5), "count": torch.zeros(2)} for _ in range(3)]
    found = bundles(bind_call(target, (cache, torch.zeros(2, 5))))
    assert [(first, len(members)) for first, members in found.items()] == [
        (("past.0.key", 0), 6),
        (("past.0.key", 1), 6),
        (("past.0.count", 0), 3),
        (("x", 0), 1),
        (("x", 1), 1),
    ]


def test_sizes_of_a_place_are_those_of_its_bundle():
    bundled = {("a", 0): (("a", 0), ("b", 0)), ("c", 1): (("c", 1),)}
    assert spread({("a", 0): 5, ("c", 1): 7}, bundled) == {("a", 0): 5, ("b", 0): 5, ("c", 1): 7}


# ---- sizes that tell more


def test_small_axes_are_enlarged_to_sizes_that_stand_nowhere_else():
    asked = prober(lambda x, y: x + y, torch.randn(1, 3), torch.randn(1, 3))
    made = enlarged_call(asked, bundles(asked.signature))
    sizes = [tuple(leaf.value.shape) for leaf in made.leaves]
    assert sizes == [(4, 3), (4, 3)]


def test_large_axes_are_made_smaller_and_small_ones_left():
    asked = prober(nn.ReLU(), torch.randn(3, 256))
    made = shrunk_call(asked, bundles(asked.signature))
    assert tuple(made.leaves[0].value.shape) == (3, 32)
    asked = prober(nn.ReLU(), torch.randn(3, 12))
    assert shrunk_call(asked, bundles(asked.signature)) is None


# ---- places that do not move alone, with the fewest that must move along


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
    assert find_partners(found, ("x", 0), list(found.bundled)) is None
