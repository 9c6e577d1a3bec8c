"""Models that only lifting serves: right at sizes that no export has seen, or refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import anyshape
from anyshape.conversion.strategies import LIFTED
from tests import cases
from tests.running import is_right

ONLY_LIFTED = (
    "length_as_text", "numpy_ramp", "numpy_scalars_of_sizes", "owners_in_a_list", "reference_points",
    "weights_in_a_list",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == ONLY_LIFTED[0] else pytest.mark.slow) for name in ONLY_LIFTED]
)
def test_no_other_strategy_serves_the_case(name):
    case = cases.load(name)
    args, kwargs = cases.example(case)
    result = anyshape.export(case.model(), args, kwargs=kwargs, dims=case.dims, quick=True, budget=3)
    assert [attempt.outcome for attempt in result.attempts[:-1]].count("checked") == 0
    assert result.attempts[-1].strategy == LIFTED
    assert "computed from the sizes, found by static exports" in result.repairs[0]


class Numbered(nn.Module):
    """A table that numpy computes, entry by entry the same at every length."""

    def forward(self, x):
        steps = np.arange(x.shape[1])[:, None] / np.power(100.0, np.arange(3) / 3)
        return x + torch.from_numpy(np.concatenate([np.sin(steps), np.cos(steps)], 1)).to(x.dtype)


def test_a_table_is_taken_from_an_export_at_the_largest_size(tmp_path):
    x = torch.randn(2, 5, 6)
    result = anyshape.export(
        Numbered(), x, tmp_path / "m.onnx", dims={"x": "batch seq 6"}, sizes={"seq": "1..48"}, quick=True, budget=3
    )
    assert result.attempts[-1].strategy == LIFTED
    for batch, seq in ((1, 1), (3, 20), (2, 48)):
        assert is_right(tmp_path / "m.onnx", Numbered(), (torch.randn(batch, seq, 6),))


def refusal(model, x, **options):
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(model, x, dims={"x": "batch seq 6"}, quick=True, budget=3, **options)
    return refused.value.result


def test_a_table_without_an_end_is_refused():
    result = refusal(Numbered(), torch.randn(2, 5, 6))
    assert result.attempts[-1].strategy == LIFTED
    assert "is a table, and nothing tells its entries beyond those that were seen" in result.attempts[-1].reason


class Windowed(nn.Module):
    """A window of numpy: neither a ramp nor a table."""

    def forward(self, x):
        return x * torch.from_numpy(np.hanning(x.shape[1])).float()[:, None]


def test_numbers_without_a_pattern_are_refused():
    result = refusal(Windowed(), torch.randn(2, 5, 6))
    assert result.attempts[-1].outcome == "failed"
    assert "follows no pattern that is known" in result.attempts[-1].reason


class Unrolled(nn.Module):
    """As many nodes as there are steps."""

    def forward(self, x):
        state = torch.zeros(x.shape[0], 6)
        for step in range(int(str(x.shape[1]))):
            state = torch.tanh(state + x[:, step])
        return state


def test_a_graph_that_grows_with_a_size_is_refused():
    result = refusal(Unrolled(), torch.randn(2, 5, 6))
    assert result.attempts[-1].strategy == LIFTED
    assert "the nodes differ from size to size" in result.attempts[-1].reason


class Parted(nn.Module):
    """Another law for long sequences, beyond all sizes that are exported."""

    def forward(self, x):
        length = int(str(x.shape[1]))
        ramp = torch.tensor([1.0 / length if length <= 200 else 2.0 for _ in range(length)])
        return x * ramp[:, None]


def test_a_law_that_ends_is_noticed_by_the_check():
    result = refusal(Parted(), torch.randn(2, 5, 6))
    assert (result.attempts[-1].strategy, result.attempts[-1].outcome) == (LIFTED, "wrong")


class Decides(nn.Module):
    """A decision on values, which every static export freezes."""

    def forward(self, x):
        ramp = torch.tensor(np.linspace(0.0, 1.0, x.shape[1]), dtype=torch.float32)
        return x * ramp[:, None] if float(x.sum()) > 0 else -x


def test_a_decision_on_values_is_never_lifted():
    result = refusal(Decides(), torch.ones(2, 5, 6))
    assert LIFTED not in [attempt.strategy for attempt in result.attempts]


def test_a_healthy_model_is_not_lifted():
    result = anyshape.export(nn.Linear(6, 2), torch.randn(2, 6), dims={"input": "batch 6"}, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]


def test_weights_are_held_once(monkeypatch):
    held = []

    def watched(job, observations):
        for one in observations:
            held.append({id(v.const_value) for v in one.model.graph.initializers.values() if "weight" in v.name})
        return lift(job, observations)

    from anyshape.conversion.lifting.alignment import lift

    monkeypatch.setattr("anyshape.conversion.lifting.lifted.lift", watched)
    case = cases.load("numpy_ramp")
    args, _ = cases.example(case)
    anyshape.export(case.model(), args, dims=case.dims, quick=True, budget=3)
    assert len(held) == 5
    assert all(len(row) == 1 and row == held[0] for row in held)
