"""Weights of recurrent layers are in a file once, as the operators want them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch
from onnx import numpy_helper
from torch import nn

import anyshape
from anyshape.conversion.graph.recurrent_weights import lay_out_weights
from tests.running import is_right


def exported(model: nn.Module, path: Path) -> onnx.ModelProto:
    torch.manual_seed(0)
    anyshape.export(model.eval(), (torch.randn(3, 5, 64),), path, dims={"x": "batch seq 64"}, quick=True)
    assert is_right(path, model, (torch.randn(2, 9, 64),))
    return onnx.load(path)


def bytes_of_floats(model: onnx.ModelProto) -> int:
    arrays = [numpy_helper.to_array(value) for value in model.graph.initializer]
    return sum(array.nbytes for array in arrays if array.dtype == np.float32)


def bytes_of_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() * 4 for parameter in model.parameters())


class Shared(nn.Module):
    """Matrices larger than what torch's own optimiser folds."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(64, 64, batch_first=True)
        self.gru = nn.GRU(64, 96, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> Any:
        output, states = self.lstm(x)
        return self.lstm(output, states)[0], self.gru(x)[0]


def test_weights_are_stored_once_and_in_order(tmp_path: Path) -> None:
    model = Shared()
    written = exported(model, tmp_path / "model.onnx")
    assert {node.op_type for node in written.graph.node} == {"Transpose", "LSTM", "GRU", "Squeeze", "Reshape"}
    assert bytes_of_floats(written) == bytes_of_parameters(model)
    stored = {value.name: numpy_helper.to_array(value) for value in written.graph.initializer}
    inward, forget, cell, outward = model.lstm.weight_ih_l0.detach().chunk(4)
    wanted = torch.cat([inward, outward, forget, cell]).unsqueeze(0).numpy()
    assert np.array_equal(stored["lstm.weight_ih_l0_onnx"], wanted)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(64, 96, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.gru(x)[0], nn.functional.linear(x, self.gru.weight_ih_l0)


def test_a_weight_that_is_used_elsewhere_is_not_stored_twice(tmp_path: Path) -> None:
    model = Tied()
    assert bytes_of_floats(exported(model, tmp_path / "model.onnx")) == bytes_of_parameters(model)


def parsed(text: str) -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}'))


def test_only_weights_that_recurrent_operators_alone_use_are_moved() -> None:
    model = parsed("""
        graph (float[s, b, 1] x, float[1, 2, 1] given)
            => (float[s, 1, b, 2] y, float[s, 1, b, 2] z, float[2, 2] sum, float[2, 1] turned_too, float[2, 2] other)
        <float[2, 1] w = {1, 2}, float[2, 1] v = {1, 2}, float[2, 2] r = {1, 2, 3, 4}, float[2, 2] t = {1, 2, 3, 4},
         int64[2] rows = {1, 0}, int64[1] first = {0}>
        {
            turned = Gather <axis = 0> (w, rows)
            inner = Unsqueeze (turned, first)
            turned_too = Gather <axis = 0> (v, rows)
            inner_too = Unsqueeze (turned_too, first)
            outer = Unsqueeze (r, first)
            sum = Add (r, r)
            y, h = RNN <hidden_size = 2> (x, inner, outer)
            z, k = RNN <hidden_size = 2> (x, inner_too, outer)
            other = Gather <axis = 0> (t, rows)
        }
    """)
    lay_out_weights(model)
    assert [node.op_type for node in model.graph] == ["Gather", "Unsqueeze", "Unsqueeze", "Add", "RNN", "RNN", "Gather"]
    assert sorted(model.graph.initializers) == ["first", "r", "rows", "t", "v", "w_onnx"]
    assert model.graph.initializers["w_onnx"].const_value.numpy().tolist() == [[[2.0], [1.0]]]
