"""A file in bfloat16 is checked in float32 with the data that it has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.conversion.graph.wider_types import widened_file
from anyshape.runtime.session import Session
from anyshape.sizes import budgets


class Branching(nn.Module):
    """A weight is used by an inner graph alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(24, 24), nn.Linear(24, 24)

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) if x.sum() > 0 else self.second(x) * 2


class Looping(nn.Module):
    """Values of the type are what a body is given."""

    def forward(self, x: Tensor) -> Tensor:
        total = x[0]
        for i in range(x.shape[0]):
            total = torch.tanh(total + x[i])
        return total


def exported(model: nn.Module, path: Path) -> nn.Module:
    torch.manual_seed(0)
    model = model.to(torch.bfloat16).eval()
    x = torch.randn(3, 24, dtype=torch.bfloat16)
    result = anyshape.export(model, (x,), path, dims={"input" if isinstance(model, nn.Sequential) else "x": "batch 24"})
    assert result.verification is not None
    assert result.verification.computed_in == "float32"
    return model


@pytest.fixture(autouse=True)
def _small_is_big(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "EXTERNAL_FROM_BYTES", 1000)
    monkeypatch.setattr(budgets, "BYTES_OF_BIG_WEIGHTS", 1000)


@pytest.mark.parametrize("model", [nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 24)), Branching()])
def test_the_wide_graph_shares_the_data_and_computes_the_same(model: nn.Module, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = exported(model, path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    wide = tmp_path / "wide.onnx"
    ir.save(widened_file(path), wide)
    after = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file != wide}
    assert after == before
    assert wide.stat().st_size < next(tmp_path.glob("m.onnx.*.data")).stat().st_size * 2
    for sign in (1, -1):
        x = sign * torch.rand(5, 24)
        name = next(iter(Session(wide).inputs))
        (result,) = Session(wide).run({name: x.numpy()})
        assert np.allclose(result, model.float()(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_weight_is_cast_just_before_it_is_used(tmp_path: Path) -> None:
    exported(nn.Sequential(*(nn.Linear(24, 24) for _ in range(3))), tmp_path / "m.onnx")
    operators = [node.op_type for node in widened_file(tmp_path / "m.onnx").graph]
    assert operators == ["Cast", "Gemm"] * 3


class Tied(nn.Module):
    """One table for words and results; `straight` multiplies with it as it is, too."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.straight = nn.Embedding(50, 24), nn.Parameter(torch.randn(24, 36))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.words(x)
        return rows @ self.words.weight.T, rows @ self.straight


def test_a_large_table_is_never_cast_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "LARGEST_CAST_IN_ONE", 16 * 24 * 4)
    torch.manual_seed(0)
    model, path, wide = Tied().to(torch.bfloat16).eval(), tmp_path / "m.onnx", tmp_path / "wide.onnx"
    result = anyshape.export(model, (torch.randint(0, 50, (2, 5)),), path, dims={"x": "batch seq"})
    assert result.verdict == "checked"
    twin = widened_file(path)
    ir.save(twin, wide)
    model.float()
    x = torch.randint(0, 50, (3, 7))
    for found, expected in zip(Session(wide).run({"x": x.numpy()}), model(x), strict=True):
        assert np.allclose(found, expected.detach().numpy(), rtol=1e-4, atol=1e-4)
    casts = [node.inputs[0] for node in twin.graph if node.op_type == "Cast"]
    assert len(casts) == 1 + 4 + 3  # rows, 50 words by 16, 36 columns by 16
    assert not any(value.is_initializer() for value in casts)


def test_what_a_body_is_given_is_wide_too(tmp_path: Path) -> None:
    exported(Looping(), tmp_path / "m.onnx")
