"""Numbers that a run compares values with are heard of, before the call changes what it compares."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape.torchkit.compared_numbers import compared_numbers

X = torch.tensor([-1.0, 0.5, 2.0])
IDS = torch.tensor([3, 7, 7])

HEARD: dict[str, tuple[Callable[[], Tensor], list[float]]] = {
    "a scalar": (lambda: X > 1.5, [1.5]),
    "a tensor of one number": (lambda: torch.tensor(4.0) >= X, [4.0]),
    "ends of a clamp": (lambda: X.clamp(-3, 6), [-3, 6]),
    "one end": (lambda: X.clamp(max=5.0), [5.0]),
    "in place": (lambda: X.clone().clamp_(max=0.25), [0.25]),
    "a short table": (lambda: torch.bucketize(X, torch.tensor([0.0, 1.0, 9.0])), [0, 1, 9]),
    "what layers have inside": (lambda: F.relu6(X) + F.hardswish(X), [0, 6, -3, 3]),
    "shrunk": (lambda: F.hardshrink(X, 0.75), [0.75, -0.75]),
    "a threshold, not what is put instead": (lambda: F.threshold(X, 0.1, 20.0), [0.1]),
    "ids": (lambda: IDS == 7, [7]),
    "flags": (lambda: (X > 0).eq(True), [0]),
    "values beside values": (lambda: torch.arange(9.0) > torch.arange(9.0).flip(0), []),
    "nothing": (lambda: torch.zeros(0) > 3, []),
}


@pytest.mark.parametrize("name", HEARD)
def test_numbers_are_heard_of(name: str) -> None:
    run, numbers = HEARD[name]
    assert [one.number for one in compared_numbers(run)] == numbers


def test_ends_are_those_before_the_call() -> None:
    (one,) = compared_numbers(lambda: X.clone().clamp_(max=0.25))
    assert (one.lowest, one.highest) == (-1, 2)
    assert one.has_both_sides
    assert not one.holds_number


def test_equality_has_both_sides_where_the_number_occurs() -> None:
    held, missing = compared_numbers(lambda: (IDS == 7) | (IDS != 5))
    assert held.has_both_sides
    assert not missing.has_both_sides
    assert missing.is_integer


def test_the_same_comparison_is_known_again_in_another_run() -> None:
    first, second = compared_numbers(lambda: (X > 1) | (X * 2 > 1))
    assert first.occurrence != second.occurrence
    assert [one.occurrence for one in compared_numbers(lambda: (X + 5 > 1) | (X > 1))] == [
        first.occurrence, second.occurrence,
    ]  # fmt: skip
