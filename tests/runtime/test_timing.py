"""Rounds, quantiles, ratios with their spread, and what the machine does beside; no absolute time is asked for."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pytest

from anyshape.runtime import timing
from anyshape.runtime.timing import Spread, clock_for, clocked, is_within_noise, measure, ratio_of, spread_of
from anyshape.sizes import budgets


def test_in_every_round_all_run_once_in_an_order_that_the_seed_tells():
    def orders(seed):
        ran = []
        samples = {name: lambda name=name: ran.append(name) or 1.0 for name in "abc"}
        seconds = measure(samples, 20, random.Random(seed))
        assert seconds == {name: [1.0] * 20 for name in "abc"}
        return ["".join(ran[start : start + 3]) for start in range(0, 60, 3)]

    assert orders(1) == orders(1) != orders(2)
    assert {"".join(sorted(order)) for order in orders(1)} == {"abc"}
    assert len(set(orders(1))) > 2


def test_the_second_of_two_calls_is_timed():
    waits = iter([0.05, 0.0])
    assert clocked(lambda: time.sleep(next(waits)), "wall")() < 0.05
    assert next(waits, None) is None


def test_the_time_of_a_thread_does_not_count_waiting():
    assert clocked(lambda: time.sleep(0.02), "thread")() < 0.02 <= clocked(lambda: time.sleep(0.02), "wall")()


def test_one_thread_on_the_cpu_has_its_own_clock():
    assert [clock_for(1), clock_for(2), clock_for(1, on_cpu=False)] == ["thread", "wall", "wall"]


def test_quantiles_are_numpys():
    values = list(range(101))
    assert spread_of(values) == Spread(50, 10, 90)


@pytest.mark.parametrize(("count", "rank"), [(5, None), (6, 0), (10, 1), (20, 5), (90, 35)])
def test_the_interval_of_a_median_is_that_of_the_tables(count, rank):
    """Ranks from tables of the sign test at 95 %."""
    assert timing._rank_of_interval(count) == rank


def test_the_interval_holds_the_true_ratio_as_often_as_it_says():
    chance = np.random.default_rng(0)
    ratios = [ratio_of(list(chance.lognormal(0.2, 0.3, 30)), [1.0] * 30) for _ in range(400)]
    held = sum(one.low <= math.exp(0.2) <= one.high for one in ratios)
    assert 0.93 <= held / 400 <= 0.99


def test_a_drift_of_the_machine_is_no_part_of_a_ratio():
    drift = [1 + index / 10 for index in range(30)]
    found = ratio_of([2 * one for one in drift], drift)
    assert (found.median, found.low, found.high) == pytest.approx((2, 2, 2))


def test_of_few_rounds_nothing_is_told():
    found = ratio_of([2.0] * 5, [1.0] * 5)
    assert (found.low, found.high) == (0, math.inf)
    assert is_within_noise(found, None)


@pytest.mark.parametrize(
    ("ratio", "noise", "is_noise"),
    [
        (Spread(1.02, 0.99, 1.05), None, True),
        (Spread(1.02, 1.01, 1.05), None, False),
        (Spread(1.02, 1.01, 1.05), Spread(1.0, 0.98, 1.02), True),
        (Spread(1.2, 1.1, 1.3), Spread(1.0, 0.98, 1.02), False),
        (Spread(0.8, 0.7, 0.9), Spread(1.0, 0.98, 1.02), False),
        (Spread(0.8, 0.7, 0.9), Spread(1.1, 0.95, 1.25), True),
    ],
)
def test_what_may_be_one_or_is_no_further_than_the_same_file_is_noise(ratio, noise, is_noise):
    assert is_within_noise(ratio, noise) is is_noise


def test_long_calls_have_fewer_rounds():
    assert timing.rounds_for(0) == budgets.MOST_ROUNDS
    assert timing.rounds_for(0.2) == 30
    assert timing.rounds_for(100) == budgets.FEWEST_ROUNDS


def test_what_others_take_is_what_we_do_not():
    with timing.others_watched(lambda: 0.0) as all_of_it:
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline:
            pass
    with timing.others_watched(lambda: 1e9 * time.monotonic()) as nothing:
        time.sleep(0.1)
    assert [0 < taken <= total for taken, total in all_of_it] == [True] * len(all_of_it)
    assert [taken for taken, _ in nothing] == [0.0] * len(nothing)


def test_a_share_is_told_where_enough_was_watched():
    assert timing.share_of_others([]) == timing.share_of_others([(0.1, 0.1)]) == 0
    assert timing.share_of_others([(1.0, 3.0), (2.0, 3.0)]) == 0.5


def test_where_the_system_does_not_tell_nothing_is_said(monkeypatch):
    monkeypatch.setattr(timing, "_busy_and_all", lambda: None)
    with timing.others_watched(lambda: 0.0) as others:
        pass
    assert others == []


def test_a_machine_is_told_without_its_name():
    import platform

    assert timing.machine_name().endswith(("processor", "processors"))
    assert platform.node() not in timing.machine_name()
