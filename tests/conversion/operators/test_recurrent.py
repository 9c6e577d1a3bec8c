"""Recurrent layers of every kind export as they are, at sizes that were never traced."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.export import Dim

import anyshape
from anyshape.conversion.operators.recurrent import RECURRENT_LAYERS
from anyshape.conversion.operators.repair import applied
from tests.running import eager, is_right, load, run

SIZES = [(3, 5), (1, 1), (1, 8), (6, 1), (4, 11)]
FRAMES = {"x": "batch seq 4"}


def frames(batch: int, seq: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(batch, seq, 4),)


def exported(model: nn.Module, path: Path, make: Any = frames, dims: Any = FRAMES) -> tuple[anyshape.Result, Counter]:
    """The result and the operators of a file that is right at all sizes and came by the first way."""
    torch.manual_seed(0)
    result = anyshape.export(model.eval(), make(*SIZES[0]), path, dims=dims, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert [sizes for sizes in SIZES if not is_right(path, model, make(*sizes))] == []
    return result, Counter(node.op_type for node in onnx.load(path).graph.node)


class EveryKind(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tanh = nn.RNN(4, 3, batch_first=True)
        self.relu = nn.RNN(4, 3, 2, nonlinearity="relu", bidirectional=True)
        self.gru = nn.GRU(4, 3, 3, bias=False, batch_first=True, bidirectional=True)
        self.lstm = nn.LSTM(4, 3, 2, dropout=0.4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.tanh(x), self.relu(x.transpose(0, 1)), self.gru(x), self.lstm(x.transpose(0, 1))


def test_one_native_node_for_each_layer_with_both_directions(tmp_path: Path) -> None:
    result, operators = exported(EveryKind(), tmp_path / "model.onnx")
    assert (operators["RNN"], operators["GRU"], operators["LSTM"]) == (3, 3, 2)
    assert operators["Scan"] == operators["Loop"] == 0
    assert result.repairs == (
        "nn.RNN: native ONNX operators",
        "nn.GRU: native ONNX operators",
        "nn.LSTM: native ONNX operators",
    )


class States(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, 2, batch_first=True)
        self.gru = nn.GRU(4, 3, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> Any:
        memory = x.new_ones(2, x.shape[0], 3)
        return self.lstm(x, (torch.zeros(2, x.size(0), 3), memory)), self.gru(x, state)


def test_states_come_from_inputs_or_from_sizes(tmp_path: Path) -> None:
    dims = {"x": "batch seq 4", "state": "2 batch 3"}
    _, operators = exported(States(), tmp_path / "model.onnx", lambda b, s: (*frames(b, s), torch.randn(2, b, 3)), dims)
    assert (operators["LSTM"], operators["GRU"]) == (2, 1)


class Shifted(nn.LSTM):
    def forward(self, x: torch.Tensor, states: Any = None) -> Any:
        output, states = super().forward(x, states)
        return output + 1, states


class Own(nn.GRU):
    pass


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = Shifted(4, 4, batch_first=True)
        self.own = Own(4, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output, states = self.shared(x)
        output, _ = self.shared(output.flip(1), states)
        return self.own(output)[0]


def test_deep_inside_twice_shared_and_subclassed(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Sequential(nn.Sequential(Inner(), Inner())))
    _, operators = exported(model, tmp_path / "model.onnx", dims={"input": "batch seq 4"})
    assert (operators["LSTM"], operators["GRU"]) == (4, 2)


class Direct(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3)
        self.rnn = nn.RNN(4, 3, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> Any:
        state = torch.zeros(1, x.size(0), 3)
        numbers = {"has_biases": True, "num_layers": 1, "dropout": 0.5, "train": False, "bidirectional": False}
        by_name = torch.rnn_relu(x, hx=state, params=list(self.rnn.parameters()), **numbers, batch_first=True)
        return torch.lstm(x, (state, state), list(self.lstm.parameters()), True, 1, 0.0, False, False, True), by_name


def test_the_functions_behind_layers_may_be_called_directly(tmp_path: Path) -> None:
    _, operators = exported(Direct(), tmp_path / "model.onnx")
    assert (operators["LSTM"], operators["RNN"]) == (1, 1)


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNNCell(4, 5, nonlinearity="relu")
        self.gru = nn.GRUCell(5, 3, bias=False)
        self.lstm = nn.LSTMCell(3, 2)

    def forward(self, x: torch.Tensor) -> Any:
        state = self.gru(self.rnn(x[:, -1]))
        return state, self.lstm(state)


def test_cells_outside_of_loops(tmp_path: Path) -> None:
    exported(Cells(), tmp_path / "model.onnx")


def test_half_precision(tmp_path: Path) -> None:
    model, path = nn.GRU(4, 6, batch_first=True).half().eval(), tmp_path / "model.onnx"
    result = anyshape.export(model, (torch.randn(3, 5, 4).half(),), path, dims={"input": "batch seq 4"}, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert Counter(node.op_type for node in onnx.load(path).graph.node)["GRU"] == 1


def test_a_strict_trace_keeps_the_time_axis_free() -> None:
    for layer in (nn.LSTM(4, 3, batch_first=True), nn.GRU(4, 3, batch_first=True), nn.RNN(4, 3, batch_first=True)):
        with applied([RECURRENT_LAYERS]), torch.no_grad():
            shapes = ({0: Dim("batch"), 1: Dim("seq")},)
            program = torch.export.export(layer.eval(), frames(3, 5), dynamic_shapes=shapes, strict=True)
        operators = [str(node.target) for node in program.graph.nodes if "anyshape_recurrent" in str(node.target)]
        assert len(operators) == 1


def test_names_of_torch_are_as_before_even_after_an_error() -> None:
    before = torch.lstm, torch._VF.gru, nn.LSTM.forward, "lstm" in vars(torch._VF)
    with pytest.raises(ZeroDivisionError), applied([RECURRENT_LAYERS]):
        assert torch.lstm is not before[0]
        raise ZeroDivisionError
    after = torch.lstm, torch._VF.gru, nn.LSTM.forward, "lstm" in vars(torch._VF)
    assert after == before


def test_dropout_in_training_is_left_to_torch() -> None:
    layer = nn.LSTM(4, 3, 2, dropout=0.5)
    with applied([RECURRENT_LAYERS]) as acted:
        assert layer.train()(torch.randn(5, 2, 4))[0].shape == (5, 2, 3)
        assert acted.sentences == []
        with pytest.raises(NotImplementedError):  # what stands for a layer in a trace computes nothing
            layer.eval()(torch.randn(5, 2, 4))


def test_a_state_of_a_fixed_batch_is_blamed_where_it_is_used() -> None:
    class FixedState(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(4, 3, batch_first=True)

        def forward(self, x: torch.Tensor) -> Any:
            return self.gru(x, torch.zeros(1, 3, 3))

    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(FixedState().eval(), frames(3, 5), dims=FRAMES)
    assert [(finding.rule, finding.span.function) for finding in refused.value.findings] == [
        ("pinned-dim", "test_a_state_of_a_fixed_batch_is_blamed_where_it_is_used.FixedState.forward")
    ]


# ---- layers without a native operator are written out step by step


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
