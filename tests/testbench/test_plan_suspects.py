"""Where an assumption of a trace first breaks, inside the horizon or far beyond it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import anyshape
from anyshape.sizes.notation import SizeRange
from anyshape.testbench.plan import far_sizes, sizes_at_literals
from tests.running import is_right


def test_sizes_that_were_not_declared_are_left_alone() -> None:
    assert far_sizes({"n": SizeRange(1, 512)}, {"n": 5}) == []
    assert sizes_at_literals({64}, {"n": SizeRange(1, 512)}, {"n": 5}, "normal") == []


def test_literals_are_met_beyond_the_horizon_of_an_open_range() -> None:
    ranges = {"n": SizeRange(), "m": SizeRange(1, 512)}
    found = sizes_at_literals({64, 7, 2**30}, ranges, {"n": 5, "m": 6}, "normal")
    assert found == [{"n": 64, "m": 6}, {"n": 65, "m": 6}, {"n": 63, "m": 6}]
    assert sizes_at_literals({64}, ranges, {"n": 5, "m": 6}, "quick") == []


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cat([part.cumsum(0) for part in x.split(64)]),
        lambda x: (x, x * 2) if x.shape[0] > 1000 else x,
        lambda x: (x, x * 2) if x.shape[0] % 64 == 0 else x,
    ],
    ids=["chunks", "a branch far out", "a multiple"],
)
def test_what_breaks_far_beyond_the_example_is_refused(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(anyshape.ExportError):
        anyshape.export(function, torch.randn(5), dims={"x": "n"})


@pytest.mark.parametrize(
    ("function", "far", "sizes"),
    [
        (lambda x: x * 2 if x.shape[0] > 1000 else x, 1001, [5, 1000, 1002]),
        (lambda x: x * 2 if x.shape[0] % 64 == 0 else x, 64, [5, 63, 128]),
        (lambda x: x * {64: 2, 128: 3}.get(x.shape[0], 1), 128, [5, 63, 64, 65, 127, 128, 129]),
    ],
    ids=["a branch far out", "a multiple", "a table of sizes"],
)
def test_both_sides_of_a_branch_far_beyond_the_example_are_run(
    function: Callable[[Tensor], Tensor], far: int, sizes: list[int], tmp_path: Path
) -> None:
    result = anyshape.export(function, torch.randn(5), tmp_path / "model.onnx", dims={"x": "n"})
    assert far in {one["n"] for one in result.verification.sizes_run}
    assert [is_right(tmp_path / "model.onnx", function, (torch.randn(size),)) for size in sizes] == [True] * len(sizes)


def test_a_size_that_proved_one_file_wrong_is_run_on_the_next() -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(
            lambda x: (x, x * 2) if x.shape[0] == 371 else x, torch.randn(5), dims={"x": "n"}, sizes={"n": "1..999"}
        )
    outcomes = {attempt.strategy: attempt.outcome for attempt in refused.value.result.attempts}
    straight = ("torch.export", "TorchScript")
    assert [outcomes[strategy] for strategy in straight] == ["wrong", "wrong"]


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (None, "predicted to be more work than a check takes by itself (budget= allows more)"),
        (10**15, "predicted to need more than 8 GB"),
    ],
)
def test_a_size_that_would_fill_the_memory_is_not_run_and_said(budget: float | None, reason: str) -> None:
    sizes = {"b": "1..100000000000"}
    result = anyshape.export(
        torch.nn.Linear(4, 4), torch.randn(3, 4), dims={"input": "b 4"}, sizes=sizes, budget=budget
    )
    skipped = {sizes["b"]: reason for sizes, reason in result.verification.skipped}
    assert skipped[100000000000] == reason
