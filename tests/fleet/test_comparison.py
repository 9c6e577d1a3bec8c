from __future__ import annotations

import random

import pytest

from anyshape.fleet.comparison import SweepComparison, compare_records
from anyshape.fleet.result_lines import TaskRecord


def records(*rows: tuple[str, str, float]) -> dict[tuple[str, str], TaskRecord]:
    return {(name, "anyshape"): TaskRecord(name, "anyshape", outcome, cpu_seconds=s) for name, outcome, s in rows}


def steady(count: int, factor: float = 1.0, spread: float = 0.0, seed: int = 0) -> list[tuple[str, str, float]]:
    chance = random.Random(seed)
    return [
        (f"m{n:03}", "checked", (5 + n % 7) * factor * chance.uniform(1 - spread, 1 + spread)) for n in range(count)
    ]


def names(comparison: SweepComparison, group: str) -> list[str]:
    return [change.key[0] for change in getattr(comparison, group)]


def test_outcomes_are_better_worse_gone_and_new() -> None:
    old = records(
        ("a", "refused", 1), ("b", "checked", 1), ("c", "checked", 1), ("d", "refused", 1), ("e", "checked", 1)
    )
    new = records(("a", "checked", 1), ("b", "refused", 1), ("d", "wrong", 1), ("e", "checked", 1), ("f", "checked", 1))
    found = compare_records(old, new)
    assert {group: names(found, group) for group in ("better", "worse", "gone", "added", "slower", "faster")} == {
        "better": ["a"], "worse": ["b", "d"], "gone": ["c"], "added": ["f"], "slower": [], "faster": [],
    }  # fmt: skip
    assert found.is_regression
    assert found.same == 1
    assert str(found) == (
        "worse: 2 worse, 1 gone, 1 better, 1 new, 1 the same\n"
        "  worse    b [anyshape] checked -> refused\n"
        "  worse    d [anyshape] refused -> wrong\n"
        "  gone     c [anyshape] checked -> nothing\n"
        "  better   a [anyshape] refused -> checked\n"
        "  new      f [anyshape] nothing -> checked\n"
        "  times: 1 can be compared, too few to tell noise from change: none is called slower"
    )


def test_what_is_only_added_or_better_is_no_regression() -> None:
    found = compare_records(records(("a", "refused", 1)), records(("a", "checked", 1), ("b", "wrong", 1)))
    assert not found.is_regression
    assert str(found).startswith("no regression: 1 better, 1 new, 0 the same\n")


def test_an_entry_that_stands_out_of_the_noise_is_slower() -> None:
    old, new = records(*steady(40)), records(*steady(40, spread=0.05))
    new["m007", "anyshape"] = TaskRecord("m007", "anyshape", "checked", cpu_seconds=12.0)
    found = compare_records(old, new)
    assert names(found, "slower") == ["m007"]
    assert "slower   m007 [anyshape] 5.0 s -> 12.0 s" in str(found)
    assert names(compare_records(new, old), "faster") == ["m007"]


def test_a_machine_that_is_slower_altogether_makes_no_entry_slower_and_is_told() -> None:
    found = compare_records(records(*steady(40)), records(*steady(40, factor=1.8, spread=0.05)))
    assert names(found, "slower") == []
    assert "times: 1.8" in str(found)
    assert "in the median of 40" in str(found)


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_is_no_regression(seed: int) -> None:
    """Two sweeps of the same thing on a busy machine."""
    found = compare_records(
        records(*steady(300, spread=0.25, seed=seed)), records(*steady(300, spread=0.25, seed=seed + 1000))
    )
    assert not found.is_regression


def test_short_times_and_few_times_say_nothing() -> None:
    short = [(f"m{n}", "checked", 0.2) for n in range(20)]
    assert compare_records(records(*short), records(*[(n, o, 0.9) for n, o, _ in short])).noise.count == 0
    few = compare_records(records(*steady(5)), records(*steady(4), ("m004", "checked", 500.0)))
    assert names(few, "slower") == []
    assert "5 can be compared, too few" in str(few)


def test_a_refusal_that_takes_longer_is_not_slower() -> None:
    old, new = records(*steady(20), ("r", "refused", 2.0)), records(*steady(20), ("r", "refused", 200.0))
    assert names(compare_records(old, new), "slower") == []


def test_as_plain_values() -> None:
    found = compare_records(records(("a", "checked", 2)), records(("a", "refused", 3))).to_dict()
    assert found["regression"] is True
    assert found["worse"] == [
        {
            "name": "a",
            "column": "anyshape",
            "old": {"outcome": "checked", "cpu_seconds": 2},
            "new": {"outcome": "refused", "cpu_seconds": 3},
        }
    ]
    assert found["times"]["compared"] == 0
