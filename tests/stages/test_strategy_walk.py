"""Strategies are walked in the order of their table, and no further than the first file that is right."""

from __future__ import annotations

from dataclasses import replace

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.conversion.strategies import STRATEGIES
from anyshape.results.attempt import Attempt

WALK = "anyshape.stages.strategy_walk"


class Twice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class More(nn.Module):
    """Its sides return a different number of tensors: no file can be right."""

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return (x, x * 2) if x.shape[0] > 4 else x


def export(model: nn.Module) -> anyshape.Result:
    return anyshape.export(model, torch.randn(3), dims={"x": "n"}, quick=True)


def test_the_first_file_that_is_right_ends_the_walk() -> None:
    assert [attempt.strategy for attempt in export(Twice()).attempts] == ["torch.export"]


def test_a_strategy_that_is_skipped_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = replace(STRATEGIES[0], name="idle", convert=lambda _: (None, Attempt("idle", "skipped")))
    monkeypatch.setattr(f"{WALK}.STRATEGIES", (idle, *STRATEGIES))
    assert [attempt.strategy for attempt in export(Twice()).attempts] == ["torch.export"]


def test_all_that_apply_are_told_in_their_order() -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        export(More())
    outcomes = [(attempt.strategy, attempt.outcome) for attempt in refused.value.result.attempts]
    assert outcomes == [
        ("torch.export", "wrong"),
        ("torch.export at other sizes", "failed"),
        ("torch.export with branches and loops", "failed"),
        ("TorchScript", "wrong"),
    ]


def test_when_enough_was_converted_the_rest_is_skipped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyshape.sizes.budgets.MOST_CALLS_OF_STRATEGIES", 0)
    with pytest.raises(anyshape.ExportError) as refused:
        export(More())
    first, *others = refused.value.result.attempts
    assert first.outcome == "wrong"
    assert {(other.outcome, other.reason) for other in others} == {
        ("skipped", "the model is too long for further strategies")
    }


class InDouble(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear(x).tan()
        return hidden.atan()


def test_a_kernel_that_is_missing_in_float64_is_told_with_its_line_and_a_way_out() -> None:
    model, x = InDouble().double(), torch.randn(3, 4, dtype=torch.float64)
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(model, x, dims={"x": "n 4"}, quick=True)
    tan, atan = refused.value.findings
    has_no = f"ONNX Runtime {onnxruntime.__version__} has no"
    assert (tan.rule, tan.message, tan.span.line + 1) == (
        "unsupported-op", f"{has_no} `Tan` in float64", atan.span.line,
    )  # fmt: skip
    assert atan.message == f"{has_no} `Atan` in float64"
    assert atan.helps == ("export a copy of the model in float32: dtype=torch.float32",)
    result = anyshape.export(model, x, dims={"x": "n 4"}, quick=True, dtype=torch.float32)
    assert result.verdict == "checked"
