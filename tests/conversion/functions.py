"""A model of one function, exported and judged at sizes that nobody traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import nn

import anyshape
from tests.running import is_right

Make = Callable[..., tuple[Any, ...]]


class Of(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.function(*tensors)


def exported(
    function: Callable[..., Any] | nn.Module, make: Make, dims: Sequence[str], traced: Mapping[str, int], path: Path
) -> anyshape.Result:
    """Exported with every dim declared; the winner is not TorchScript."""
    torch.manual_seed(0)
    model = function if isinstance(function, nn.Module) else Of(function)
    names = {f"tensors.{index}": text for index, text in enumerate(dims)}
    result = anyshape.export(model, make(**traced), path, dims=names, quick=True)
    assert result.verdict == "checked"
    assert "TorchScript" not in result.attempts[-1].strategy
    return result


def wrong_sizes(
    function: Callable[..., Any] | nn.Module, make: Make, sizes: Sequence[Mapping[str, int]], path: Path
) -> list[Mapping[str, int]]:
    model = function if isinstance(function, nn.Module) else Of(function)
    torch.manual_seed(1)
    return [chosen for chosen in sizes if not is_right(path, model, make(**chosen))]


def operators(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]
