"""Numbers that equal a size of the example, where nothing fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from anyshape.diagnosis.frozen_sizes import frozen
from anyshape.sizes.notation import Expression, parse_expression
from anyshape.torchkit.recorder import track_calls

EXAMPLE = {"n": 5, "m": 3}
SIZES = {5: parse_expression("n"), 3: parse_expression("m")}


def _in_dims(size: Any) -> Expression | None:
    return SIZES.get(size)


def _found(run: Callable[[Tensor], object]) -> list[tuple[str, str, int]]:
    track = track_calls(lambda: run(torch.randn(5, 3, 4)))
    causes = frozen(track, _in_dims, EXAMPLE)
    return [(cause.kind, str(want.expression), want.size) for cause in causes for want in cause.wants]


@pytest.mark.parametrize(
    ("run", "expression", "size"),
    [
        (lambda x: x.sum(dim=0) / 5, "n", 5),
        (lambda x: x.sum(1) * (1 / 3), "m", 3),
        (lambda x: x.sum(dim=(0, 1)) / 15.0, "(n) * (m)", 15),
        (lambda x: x.sum(dim=0, keepdim=True).squeeze(0).div(5), "n", 5),
    ],
)
def test_a_sum_divided_by_the_number_of_its_terms_is_a_mean(
    run: Callable[[Tensor], object], expression: str, size: int
) -> None:
    ((kind, found, number),) = _found(run)
    assert (kind, number) == ("mean", size)
    assert parse_expression(found).value(EXAMPLE) == parse_expression(expression).value(EXAMPLE)


def _looped(x: Tensor) -> Tensor:
    total = x[0]
    for i in range(5):
        total = total + x[i]
    return total


def test_a_loop_that_reads_every_entry_counts_to_the_size() -> None:
    assert _found(_looped) == [("loop", "n", 5)]
    assert _found(lambda x: [x.select(1, i) for i in range(3)]) == [("loop", "m", 3)]


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x.sum(dim=0) / 4,
        lambda x: x.sum(dim=2) / 4,
        lambda x: x.exp() / 5,
        lambda x: [x[i] for i in range(4)],
        lambda x: [x[i] for i in (1, 0, 2, 3, 4)],
        lambda x: x.mean(dim=0),
    ],
    ids=["another number", "a static axis", "no sum", "too few", "another order", "a mean"],
)
def test_other_numbers_are_left_alone(run: Callable[[Tensor], object]) -> None:
    assert _found(run) == []
