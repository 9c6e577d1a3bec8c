"""A budget is counted in work, which no clock and no load changes; or in seconds, where the user gives them."""

from __future__ import annotations

import math

import pytest

from anyshape.sizes import budgets
from anyshape.sizes.effort import Effort
from anyshape.testbench import plan
from anyshape.testbench.plan import Budget, available_memory

MORE_WORK = "predicted to be more work than a check takes by itself (budget= allows more)"


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(plan.time, "monotonic", lambda: now[0])
    return now


def test_work_is_cut_where_it_exceeds_what_is_left():
    budget = Budget(work=100)
    budget.charge(Effort(60))
    assert budget.remaining == 40
    assert budget.refuses(Effort(40)) is None
    assert budget.refuses(Effort(41)) == MORE_WORK


def test_time_cuts_nothing_until_it_is_absurd(clock):
    budget = Budget()
    clock[0] += 10 * 60
    assert budget.refuses(Effort(1)) is None
    clock[0] += 10 * 60
    assert budget.refuses(Effort(1)) == "this machine took more than 15 minutes for what is work of seconds"
    assert budget.refuses(Effort(1e12)) == MORE_WORK


def test_seconds_of_the_user_are_kept_whatever_the_work(clock):
    budget = Budget(10.0)
    assert budget.refuses(Effort(1e15)) is None  # nothing is known of this machine yet
    budget.charge(Effort(1000))
    clock[0] += 2.0
    assert budget.refuses(Effort(4000)) is None
    assert budget.refuses(Effort(4001)) == "predicted to take longer than the budget"
    clock[0] += 8.0
    assert budget.refuses(Effort(0)) == "the budget was used up"


def test_a_part_starts_anew(clock):
    assert Budget(work=100).part(0.25).remaining == 25
    spent = Budget(10.0)
    clock[0] += 10.0
    assert spent.part(0.25).remaining == 2.5


def test_memory_is_cut_at_a_fixed_size_and_where_the_machine_has_none(monkeypatch):
    monkeypatch.setattr(plan, "available_memory", lambda: math.inf)
    assert Budget().refuses(Effort(1, largest={"mm": 2**31})) is None
    assert Budget().refuses(Effort(1, largest={"mm": 2**31 + 1})) == "predicted to need more than 8 GB"
    monkeypatch.setattr(plan, "available_memory", lambda: 2**32)
    assert Budget().refuses(Effort(1, largest={"mm": 2**30})) is None
    assert Budget().refuses(Effort(1, largest={"mm": 2**31})) == (
        "this machine has less memory free than the 8.0 GB predicted"
    )


def test_there_is_some_memory():
    assert available_memory() > 2**20


def test_where_the_system_does_not_tell_there_is_enough(monkeypatch, tmp_path):
    monkeypatch.setattr(plan, "Path", lambda _: tmp_path / "nothing")
    assert available_memory() == math.inf


def test_the_default_is_the_work_of_about_ten_seconds():
    assert Budget().remaining == budgets.WORK_TO_CHECK
