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


# ---- inputs of a few common kinds


def table(b: int, t: int) -> tuple[Any, ...]:
    return (torch.randn(b, t),)


def image(b: int, h: int, w: int) -> tuple[Any, ...]:
    return (torch.randn(b, 3, h, w),)


def square(b: int, n: int) -> tuple[Any, ...]:
    return (torch.randn(b, n, n) + 3 * n * torch.eye(n),)


_KINDS: dict[Make, tuple[str, Mapping[str, int], Sequence[Mapping[str, int]]]] = {
    table: ("b t", {"b": 3, "t": 7}, [{"b": 1, "t": 1}, {"b": 4, "t": 3}, {"b": 2, "t": 11}]),
    image: (
        "b 3 h w",
        {"b": 2, "h": 6, "w": 9},
        [{"b": 1, "h": 3, "w": 4}, {"b": 3, "h": 10, "w": 7}, {"b": 2, "h": 5, "w": 13}],
    ),
    square: ("b n n", {"b": 2, "n": 4}, [{"b": 1, "n": 1}, {"b": 3, "n": 2}, {"b": 2, "n": 7}]),
}


def wrong_sizes_of(function: Callable[..., Any], make: Make, path: Path) -> list[Mapping[str, int]]:
    """Exported at one size of such inputs; the sizes among others at which the file is wrong."""
    dims, traced, sizes = _KINDS[make]
    exported(function, make, [dims], traced, path)
    return wrong_sizes(function, make, sizes, path)
