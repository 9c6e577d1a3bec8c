"""Recurrent layers without a native operator are written out step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn

import anyshape
from tests.running import eager, load, run

SIZES = [(3, 5), (1, 1), (1, 8), (6, 1), (4, 11)]


class Wide(nn.Module):
    """Layers in float64, which ONNX Runtime's own operators do not take."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 3, 2, bidirectional=True)
        self.plain = nn.GRU(6, 3, bias=False)
        self.relu = nn.RNN(4, 3, nonlinearity="relu")
        self.tanh = nn.RNN(3, 3, bias=False)
        self.lstm = nn.LSTM(4, 3)

    def forward(self, x: torch.Tensor) -> Any:
        output, last = self.gru(x)
        return self.plain(output), last, self.tanh(self.relu(x)[0]), self.lstm(x)


def test_layers_in_float64_keep_their_precision(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = Wide().double().eval(), tmp_path / "model.onnx"
    result = anyshape.export(model, (torch.randn(5, 3, 4).double(),), path, dims={"x": "seq batch 4"}, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert "nn.GRU: a Scan over time, where ONNX has no operator" in result.repairs
    for batch, seq in SIZES:
        x = torch.randn(seq, batch, 4).double()
        for got, want in zip(run(load(path), {"x": x}), eager(model, (x,)), strict=True):
            assert got.shape == tuple(want.shape)
            assert np.abs(got - want.numpy()).max() < 1e-12


def test_a_projected_lstm_starts_from_its_states_in_both_directions(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = nn.LSTM(4, 5, proj_size=2, bidirectional=True, bias=False).eval(), tmp_path / "model.onnx"

    class Projected(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = model

        def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Any:
            return self.lstm(x, (h, c))

    def make(batch: int, seq: int) -> tuple[torch.Tensor, ...]:
        return torch.randn(seq, batch, 4), torch.randn(2, batch, 2), torch.randn(2, batch, 5)

    dims = {"x": "seq batch 4", "h": "2 batch 2", "c": "2 batch 5"}
    anyshape.export(Projected().eval(), make(3, 5), path, dims=dims, quick=True)
    assert sum(node.op_type == "Scan" for node in onnx.load(path).graph.node) == 2
    for sizes in SIZES:
        args = make(*sizes)
        results = run(load(path), dict(zip(("x", "h", "c"), args, strict=True)))
        for got, want in zip(results, eager(Projected(), args), strict=True):
            assert got.shape == tuple(want.shape)
            assert np.abs(got - want.numpy()).max() < 1e-5
