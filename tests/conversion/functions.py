"""A model of one function, exported and judged at sizes that nobody traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import torch
from torch import nn

import anyshape
from anyshape.conversion.translation import translate_program
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


# ---- many functions in one file, translated alone: neither checked nor rewritten


def wrong_results(functions: Mapping[str, Callable[..., Any]], *tensors: torch.Tensor) -> list[str]:
    """Those whose results in ONNX Runtime are not eager's at these very values; NaN is NaN."""

    def all_of_them(*given: torch.Tensor) -> Any:
        return [function(*given) for function in functions.values()]

    program = torch.export.export(Of(all_of_them), tensors)
    file = ir.to_proto(translate_program(program, 20, {}).model).SerializeToString()
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    found = iter(session.run(None, {name: one.numpy() for name, one in zip(names, tensors, strict=True)}))
    wrong = []
    for name, function in functions.items():
        wanted = function(*tensors)
        pairs = [(next(found), one.numpy()) for one in (wanted if isinstance(wanted, tuple) else (wanted,))]
        if not all(_is_same(*pair) for pair in pairs):
            wrong.append(f"{name}: {pairs}")
    return wrong


def _is_same(found: np.ndarray, wanted: np.ndarray) -> bool:
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if found.dtype.kind != "f":
        return bool((found == wanted).all())
    return np.allclose(found, wanted, rtol=1e-5, atol=1e-37, equal_nan=True)
