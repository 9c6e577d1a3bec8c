"""The prober: what it answers, that it stops, and that it leaves no trace."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.model.proposal.probe import Prober, RunBudget, sizes_of
from anyshape.sizes import budgets


class Tagger(nn.Module):
    """Keeps count of its calls, changes its input, and draws."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.calls = 0
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, ids: Tensor, scale: Tensor, keep: int) -> tuple[Tensor, int]:
        self.calls += 1
        self.seen += 1
        scale.mul_(2)
        random.random()
        np.random.rand()
        torch.rand(1)
        x = self.drop(self.norm(self.words(ids).transpose(1, 2)))
        return x[:, :, :keep] * scale, keep


def prober(limit: int = 400) -> Prober:
    target = resolve_target(Tagger().train())
    ids, scale = torch.arange(10).view(2, 5), torch.ones(2, 1, 1)
    return Prober(target, bind_call(target, (ids, scale, 3)), budget=RunBudget(limit))


def test_every_axis_and_every_int_is_a_place():
    assert prober().sizes == {
        ("ids", 0): 2, ("ids", 1): 5, ("scale", 0): 2, ("scale", 1): 1, ("scale", 2): 1, ("keep", None): 3,
    }  # fmt: skip


def test_a_negative_number_is_no_size():
    target = resolve_target(lambda x, axis: x.unsqueeze(axis))
    assert sizes_of(bind_call(target, (torch.zeros(2, 3), -1))) == {("x", 0): 2, ("x", 1): 3}


def test_outputs_are_told_by_their_shapes():
    asked = prober()
    assert asked.outputs({}) == ((2, 4, 3), ())
    assert asked.outputs({("ids", 0): 7, ("scale", 0): 7}) == ((7, 4, 3), ())
    assert asked.outputs({("keep", None): 5}) == ((2, 4, 5), ())
    assert asked.outputs({("ids", 0): 7}) is None
    assert not asked.runs({("scale", 2): 2})
    assert not asked.runs({("ids", 1): -1})


def test_what_was_asked_once_is_remembered():
    asked = prober()
    asked.runs({("ids", 1): 6})
    asked.runs({("ids", 1): 6, ("ids", 0): 2})
    assert asked.budget.count == 1


def test_beyond_the_limit_nothing_runs_and_it_is_said():
    asked = prober(limit=2)
    assert [asked.runs({("ids", 1): size}) for size in (6, 7)] == [True, True]
    assert not asked.budget.exhausted
    assert not asked.runs({("ids", 1): 8})
    assert asked.budget.exhausted
    assert asked.runs({("ids", 1): 6})
    assert asked.budget.count == 2


def test_the_clock_ends_only_what_is_absurd():
    late = RunBudget(10, deadline=time.monotonic() - 1)
    assert late.is_spent()
    assert late.is_late
    assert RunBudget(10).deadline > time.monotonic() + 600
    assert not RunBudget(10).is_spent()


@pytest.mark.parametrize(("width", "runs"), [(4, 200), (4000, 60)])
def test_dear_models_are_asked_less_often(width: int, runs: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(budgets, "WORK_TO_FIND_DIMS", 6e6)
    target = resolve_target(nn.Linear(width, 50))
    budget = RunBudget.for_runs_of(target, bind_call(target, (torch.randn(8, width),)), 200)
    assert budget.limit == runs
    copied = 8 * width
    assert budget.work == copied + 8 * 50 + 8 * 50 * width / 32 + 3 * budgets.WORK_OF_A_CALL


@pytest.mark.parametrize("sizes", [{("ids", 1): 7}, {("ids", 0): 3}])
def test_nothing_of_the_model_the_call_or_the_generators_changes(sizes: dict[tuple[str, int | None], int]):
    asked = prober()
    model = asked.target.module
    before = [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]
    asked.runs(sizes)
    after = [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]
    assert after == before
    assert (model.calls, model.seen.item(), model.norm.num_batches_tracked.item()) == (0, 0, 0)
    assert all(part.training for part in model.modules())
    assert asked.signature.values["scale"].flatten().tolist() == [1, 1]


class Watchful(nn.Module):
    """Only a mask that hides something shows that its length matters."""

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        return x.masked_fill(hidden, 0) if bool(hidden.any()) else x


def test_a_mask_that_is_the_same_everywhere_is_tried_flipped_too():
    target = resolve_target(Watchful())
    asked = Prober(
        target, bind_call(target, (torch.randn(2, 5), torch.zeros(2, 5, dtype=torch.bool))), budget=RunBudget(400)
    )
    assert not asked.runs({("x", 1): 6})
    assert asked.runs({("x", 1): 6, ("hidden", 1): 6})


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.layer(x) + y


def test_a_weight_that_refuses_is_told_from_an_input_that_does():
    target = resolve_target(Weighted())
    asked = Prober(target, bind_call(target, (torch.randn(2, 4), torch.randn(2, 3))), budget=RunBudget(400))
    assert asked.refuses_by_weight({("x", 1): 5})
    assert not asked.refuses_by_weight({("y", 1): 4})
