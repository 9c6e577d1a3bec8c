"""Trials of a declaration: which are worth their cost, and what happens when no more are granted."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.model.proposal.bounds import BoundTrials, SpentError
from anyshape.model.proposal.probe import RunBudget


def trials(*, work: float = 1e6, limit: int = 10) -> BoundTrials:
    target = resolve_target(nn.Linear(4, 3))
    signature = bind_call(target, (torch.randn(2, 5, 4),))
    dims = {"input": ("batch", "seq", "_")}
    return BoundTrials(target, signature, dims, budget=RunBudget(limit, work=work))


def test_a_trial_is_as_small_as_its_inputs():
    assert trials().is_small({"seq": 500})
    assert not trials().is_small({"batch": 10**6})


def test_a_model_of_much_work_is_tried_at_hardly_more_than_its_example():
    assert trials(work=5e9).is_small({"seq": 20})
    assert not trials(work=5e9).is_small({"seq": 50})


def test_without_a_budget_there_is_no_answer():
    assert trials().runs({"batch": 7})
    with pytest.raises(SpentError):
        trials(limit=0).runs({"batch": 7})
