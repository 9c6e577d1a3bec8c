"""Weights beside a model are written once, and each of them in one place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from onnx import numpy_helper
from torch import nn

import anyshape
from anyshape.onnxfile import saving
from anyshape.onnxfile.placement import listed_data
from anyshape.onnxfile.saving import staged
from tests.running import is_right


class TorchTensor(ir.Tensor):
    """As torch's exporter holds a weight: without a copy."""

    def __init__(self, tensor: torch.Tensor, name: str) -> None:
        super().__init__(tensor, dtype=ir.DataType.FLOAT, shape=ir.Shape(tensor.shape), name=name)

    def numpy(self):
        return self.raw.numpy()

    def tofile(self, file):
        file.write(self.raw.contiguous().numpy().tobytes())


def model_of(**weights: torch.Tensor) -> ir.Model:
    """Gives each weight back."""
    values = [ir.Value(name=name, const_value=TorchTensor(tensor, name)) for name, tensor in weights.items()]
    nodes = [ir.node("Identity", [value]) for value in values]
    for node, name in zip(nodes, weights, strict=True):
        node.outputs[0].name = f"{name}_out"
    outputs = [node.outputs[0] for node in nodes]
    graph = ir.Graph([], outputs, nodes=nodes, initializers=values, opset_imports={"": 18}, name="main")
    return ir.Model(graph, ir_version=8)


def stored(path: Path) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


def data_of(path: Path) -> Path:
    [name] = listed_data(path)
    return path.with_name(name)


def test_a_model_written_again_keeps_the_data_that_is_there(tmp_path):
    model = model_of(w=torch.randn(1000))
    with staged(tmp_path / "m.onnx") as stage:
        stage.write(model, external_data=True)
        before = data_of(stage.path).stat()
        model.metadata_props["contract"] = "known now"
        stage.write(model, external_data=True)
        after = data_of(stage.path).stat()
        stage.commit()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert onnx.load(tmp_path / "m.onnx").metadata_props[0].value == "known now"


def test_another_model_replaces_the_data(tmp_path):
    first, second = torch.randn(1000), torch.randn(700)
    with staged(tmp_path / "m.onnx") as stage:
        stage.write(model_of(w=first), external_data=True)
        stage.write(model_of(w=second), external_data=True)
        stage.commit()
    assert np.array_equal(stored(tmp_path / "m.onnx")["w"], second.numpy())
    assert data_of(tmp_path / "m.onnx").stat().st_size == second.nbytes


def test_a_model_without_data_leaves_none_of_the_one_before(tmp_path):
    weights = torch.randn(1000)
    with staged(tmp_path / "m.onnx") as stage:
        for external_data in (True, False, True, False):
            stage.write(model_of(w=weights), external_data=external_data)
        stage.commit()
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_what_shares_memory_is_stored_once(tmp_path):
    table = torch.randn(100, 20)
    weights = {"part": table[30:80], "table": table, "tied": table.view(20, 100), "last": table[70:], "own": table + 1}
    with staged(tmp_path / "m.onnx") as stage:
        stage.write(model_of(**weights), external_data=True)
        stage.commit()
    found = stored(tmp_path / "m.onnx")
    assert all(np.array_equal(found[name], tensor.numpy()) for name, tensor in weights.items())
    assert data_of(tmp_path / "m.onnx").stat().st_size == 2 * table.nbytes


def test_what_is_not_in_one_piece_is_stored_by_itself(tmp_path):
    table = torch.randn(100, 20)
    weights = {"table": table, "turned": table.t(), "columns": table[:, 3:17]}
    with staged(tmp_path / "m.onnx") as stage:
        stage.write(model_of(**weights), external_data=True)
        stage.commit()
    found = stored(tmp_path / "m.onnx")
    assert all(np.array_equal(found[name], tensor.numpy()) for name, tensor in weights.items())


def test_overlapping_tensors_of_which_none_holds_the_other_are_both_stored(tmp_path):
    table = torch.randn(100, 20)
    weights = {"first": table[:60], "second": table[40:]}
    with staged(tmp_path / "m.onnx") as stage:
        stage.write(model_of(**weights), external_data=True)
        stage.commit()
    found = stored(tmp_path / "m.onnx")
    assert all(np.array_equal(found[name], tensor.numpy()) for name, tensor in weights.items())


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_in_the_middle_of_the_data_leaves_nothing_behind(tmp_path, monkeypatch, error):
    (tmp_path / "m.onnx").write_bytes(b"old")
    real, count = TorchTensor.tofile, iter(range(9))

    def tofile(self, file):
        if next(count) == 1:
            raise error
        real(self, file)

    monkeypatch.setattr(TorchTensor, "tofile", tofile)
    model = model_of(first=torch.randn(1000), second=torch.randn(1000))
    with pytest.raises(type(error)), staged(tmp_path / "m.onnx") as stage:
        stage.write(model, external_data=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"m.onnx": b"old"}
    assert isinstance(model.graph.initializers["first"].const_value, TorchTensor)


# ---- a whole export


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20_000, 16)
        self.head = nn.Linear(16, 20_000, bias=False)
        self.head.weight = self.words.weight
        self.rows = nn.Parameter(self.words.weight.detach()[:200])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.words(tokens)) + (self.rows * self.rows).sum()


def test_an_export_writes_each_weight_once(tmp_path, monkeypatch):
    monkeypatch.setattr(saving.budgets, "EXTERNAL_FROM_BYTES", 1000)
    torch.manual_seed(0)
    model = Tied().eval()
    real, lengths = ir.external_data.convert_tensors_to_external, []

    def counted(tensors, *where):
        lengths.extend(tensor.nbytes for tensor in tensors)
        return real(tensors, *where)

    monkeypatch.setattr(ir.external_data, "convert_tensors_to_external", counted)
    path = tmp_path / "m.onnx"
    anyshape.export(model, (torch.randint(0, 500, (2, 3)),), path, dims={"tokens": "batch seq"}, quick=True)
    assert is_right(path, model, (torch.randint(0, 500, (4, 7)),))
    assert lengths == [model.words.weight.nbytes]
    assert data_of(path).stat().st_size == model.words.weight.nbytes


def test_weights_that_are_all_small_stay_in_the_model(tmp_path):
    path = tmp_path / "m.onnx"
    anyshape.export(torch.nn.Linear(2, 2), torch.ones(3, 2), path, dims={"*": "n 2"}, quick=True, external_data=True)
    assert onnxruntime.InferenceSession(path).run(None, {"input": np.ones((4, 2), np.float32)})[0].shape == (4, 2)
