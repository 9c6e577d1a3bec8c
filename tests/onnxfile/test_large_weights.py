"""Weights beyond what one protobuf can hold (2 GB) are exported, checked and loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import anyshape
from anyshape.onnxfile.placement import listed_data
from anyshape.runtime.session import Session

_WIDTH = 8192


@pytest.fixture(scope="module")
def model() -> nn.Module:
    """2.2 GB in nine layers."""
    layers = [nn.utils.skip_init(nn.Linear, _WIDTH, _WIDTH) for _ in range(9)]
    for layer in layers:
        for parameter in layer.parameters():
            nn.init.constant_(parameter, 0.5 / _WIDTH)
    return nn.Sequential(*layers).eval()


@pytest.mark.slow
def test_more_than_two_gigabytes_are_written_and_checked(model: nn.Module, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    x = torch.randn(3, _WIDTH)
    result = anyshape.export(model, (x,), path, dims={"input": f"batch {_WIDTH}"}, quick=True)
    assert result.verdict == "checked"
    weights = sum(parameter.nbytes for parameter in model.parameters())
    assert weights > 2**31
    [data] = listed_data(path)
    assert {file.name for file in tmp_path.iterdir()} == {"m.onnx", data}
    assert weights <= (tmp_path / data).stat().st_size < weights * 1.01
    x = torch.randn(5, _WIDTH)
    (found,) = Session(path).run({"input": x.numpy()})
    assert torch.allclose(torch.from_numpy(found), model(x), rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_more_than_two_gigabytes_need_no_file_of_the_users(model: nn.Module) -> None:
    x = torch.randn(3, _WIDTH)
    result = anyshape.export(model, (x,), None, dims={"input": f"batch {_WIDTH}"}, quick=True)
    assert result.verdict == "checked"
    (found,) = result(x[:2])
    assert torch.allclose(found, model(x[:2]), rtol=1e-4, atol=1e-6)
