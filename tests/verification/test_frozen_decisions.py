"""A module that decides by values at some sizes, where its trace decides nothing: right, if both answers were run."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import anyshape


class Skipping(nn.Module):
    """As masks are skipped in transformers: with one token and nothing hidden, a shorter way gives the same."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if x.shape[1] == 1 and not torch.compiler.is_exporting() and bool(mask.all()):
            return x * 2
        return x * 2 * mask.float().mean(1)[:, None, None]


def test_a_decision_that_was_taken_both_ways_is_not_frozen() -> None:
    call = (torch.randn(2, 3, 4), torch.ones(2, 6, dtype=torch.bool))
    result = anyshape.export(Skipping(), call, dims={"x": "batch seq 4", "mask": "batch n"})
    assert [(attempt.strategy, attempt.outcome) for attempt in result.attempts] == [("torch.export", "checked")]


def _unless_nothing_is_hidden(x: Tensor, mask: Tensor, weighted: Tensor) -> Tensor:
    """Asked in two places; the second is reached only where something is hidden, and then has one answer."""
    if bool(mask.all()):
        return x
    if bool(mask[:, : mask.shape[1]].all()):
        return x
    return weighted


class SkippingInTwoPlaces(nn.Module):
    """The second place is asked only where something is hidden, and then has one answer, at every size."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if x.shape[1] > 1:
            x = x + 0.0
        weighted = x * mask.float().mean(1)[:, None, None]
        if torch.compiler.is_exporting():
            return weighted
        return _unless_nothing_is_hidden(x, mask, weighted)


def test_a_decision_that_the_trace_passes_by_at_its_own_sizes_is_not_frozen_at_others() -> None:
    call = (torch.randn(2, 3, 4), torch.ones(2, 6, dtype=torch.bool))
    result = anyshape.export(SkippingInTwoPlaces(), call, dims={"x": "batch seq 4", "mask": "batch n"})
    assert [(attempt.strategy, attempt.outcome) for attempt in result.attempts] == [("torch.export", "checked")]


class SkippingBelowAWindow(nn.Module):
    """As masks with a window are skipped in transformers: only below it, where the second place has one answer."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        assert x.shape[1] >= 5 or x.dim() == 3  # which the trace assumes
        weighted = x * mask.float().mean(1)[:, None, None]
        if torch.compiler.is_exporting() or x.shape[1] >= 5:
            return weighted
        return _unless_nothing_is_hidden(x, mask, weighted)


def test_a_decision_that_a_trace_passes_by_at_the_sizes_where_it_is_met_is_not_frozen() -> None:
    call = (torch.randn(2, 7, 4), torch.ones(2, 6, dtype=torch.bool))
    result = anyshape.export(SkippingBelowAWindow(), call, dims={"x": "batch seq 4", "mask": "batch n"})
    assert [(attempt.strategy, attempt.outcome) for attempt in result.attempts] == [("torch.export", "checked")]


class DecidingBelowAWindow(nn.Module):
    """The same without a word about exports: the file would never give the other answer."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] < 5 and bool(x.sum() > 1e30):
            return x * 0
        return x * 2


def test_a_decision_that_no_trace_passes_by_is_still_frozen() -> None:
    result = anyshape.export(DecidingBelowAWindow(), (torch.randn(2, 7, 4),), dims={"x": "batch seq 4"})
    assert [(attempt.strategy, attempt.outcome) for attempt in result.attempts] == [
        ("torch.export", "failed"),
        ("torch.export with branches and loops", "checked"),
    ]
    assert result.attempts[0].reason.startswith("would freeze a decision at")


class ReadingABool(nn.Module):
    """A decision that a trace takes along, as a number."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] < 5:
            return x * 2 - (x.sum() > 1e3).item() * x * 2
        return x * 2


class DecidingInOtherWords(nn.Module):
    """A decision that is exported as an operator."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] >= 5:
            return x * 2
        if torch.compiler.is_exporting():
            return torch.where(x.sum() > 1e3, x * 0, x * 2)
        return x * 0 if bool(x.sum() > 1e3) else x * 2


class DecidingTwice(nn.Module):
    """One decision that is left out of exports at all sizes, and one at a single size that is not."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] < 5:
            if not torch.compiler.is_exporting() and bool(x.sum() > 1e30):
                return x * 2
            if x.shape[0] == 3 and x.shape[1] == 3 and bool(x.sum() > 1e3):
                return x * 0
        return x * 2


@pytest.mark.parametrize("module", [ReadingABool(), DecidingInOtherWords(), DecidingTwice()])
def test_a_decision_that_a_trace_takes_along_is_frozen(module: nn.Module, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    anyshape.export(module, (torch.randn(2, 7, 4),), path, dims={"x": "batch seq 4"})
    x = torch.full((3, 3, 4), 100.0)
    (found,) = onnxruntime.InferenceSession(path).run(None, {"x": x.numpy()})
    assert torch.equal(torch.from_numpy(found), module(x))


class ReadingBelowAWindow(nn.Module):
    """A length that a trace takes as it comes, although it decides what the result is."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        if x.shape[1] < 5:
            return x[:, : int(lengths.max().clamp(min=5))] * 2
        return x * 2


def test_a_number_that_is_read_is_no_decision_that_a_trace_passes_by() -> None:
    call = (torch.randn(2, 7, 4), torch.tensor([7, 7]))
    result = anyshape.export(ReadingBelowAWindow(), call, dims={"x": "batch seq 4", "lengths": "batch"})
    assert result.attempts[0].reason.startswith("would freeze a decision at")
