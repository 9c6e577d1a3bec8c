"""Numbers computed from sizes: exact like Python at every size, and no trace of the repair afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape
from anyshape.conversion.operators.arithmetic import DIVISIONS
from anyshape.conversion.operators.repair import applied
from tests.conversion.functions import exported, table, wrong_results, wrong_sizes, wrong_sizes_of
from tests.running import is_right

Function = Callable[[Tensor], Tensor]


class Of(nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Deep(nn.Module):
    """The same code twice, once three modules deep."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.first = Of(function)
        self.inner = nn.Sequential(nn.Sequential(Of(function)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.first(x), self.inner(x)


FUNCTIONS: dict[str, Function] = {
    "int of a product": lambda x: x[:, : int(x.shape[1] * 0.7)],
    "int of a quotient": lambda x: x[:, : int(x.shape[1] / 2)],
    "int of a tensor": lambda x: x[:, : int(torch.tensor(x.shape[1]) * 0.5)],
    "ceiling by two minus signs": lambda x: F.pad(x, (0, -(-x.shape[1] // 4) * 4 - x.shape[1])),
    "remainder": lambda x: F.pad(x, (0, (4 - x.shape[1] % 4) % 4)),
    "divmod": lambda x: x[:, : divmod(x.shape[1], 3)[0]],
    "float floor division": lambda x: x[:, : int(x.shape[1] // 1.5)],
    "round": lambda x: x[:, : round(x.shape[1] * 0.35)],
    "math.sqrt": lambda x: x / math.sqrt(x.shape[1]),
    "sqrt imported by name": lambda x: x / sqrt(x.shape[1]),
    "math.isqrt": lambda x: x[:, : math.isqrt(x.shape[1])],
    "a power": lambda x: x * x.shape[1] ** -0.5,
    "math.ceil": lambda x: F.pad(x, (0, max((math.ceil(x.shape[1] / 2) - 1) * 2 + 3 - x.shape[1], 0))),
    "math.log": lambda x: x * math.log(x.shape[1] + 1, 512),
    "math.log2": lambda x: x[:, : math.ceil(math.log2(x.shape[1] + 1))],
    "math.exp": lambda x: x * math.exp(-x.shape[1]),
    "len": lambda x: x.sum(0) / len(x),
    "float": lambda x: x * float(x.shape[1]),
    "np.prod": lambda x: x.reshape(int(np.prod(x.shape))),
    "np.ceil": lambda x: x[:, : int(np.ceil(x.shape[1] / 3))],
    "np.mean": lambda x: x * float(np.mean(x.shape)),
    "math.prod": lambda x: x.reshape(math.prod(x.shape)),
    "numel": lambda x: x.reshape(x.numel()) / x.numel(),
    "torch.tensor of a shape": lambda x: x.sum() * torch.tensor(x.shape).float(),
    "isinstance": lambda x: x * (x.shape[1] if isinstance(x.shape[1], int) else 7),
    "linspace": lambda x: x + torch.linspace(-1, 1, x.shape[1]),
    "logspace": lambda x: x * torch.logspace(0, 1, steps=x.shape[1]),
    "hann window": lambda x: x * torch.hann_window(x.shape[1]),
    "symmetric window": lambda x: x * torch.hamming_window(x.shape[1], periodic=False),
    "arange with a float step": lambda x: x * torch.arange(0, 1, 1 / x.shape[1])[: x.shape[1]],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_right_at_every_size_and_not_by_torchscript(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Deep(FUNCTIONS[name]).eval()
    path = tmp_path / "model.onnx"
    result = anyshape.export(model, (torch.randn(3, 10),), path, dims={"x": "batch length"}, quick=True)
    assert result.attempts[-1].strategy.startswith("torch.export")
    wrong = [
        (b, n)
        for b, n in ((1, 1), (3, 10), (2, 7), (1, 64), (5, 90))
        if not is_right(path, model, (torch.randn(b, n),))
    ]
    assert wrong == []


class Numbers(nn.Module):
    """One number for each kind of arithmetic."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.tensor(self.numbers(x.shape[0]))

    @staticmethod
    def numbers(n: int) -> list[int]:
        return [
            int(n * 0.7), round(n * 0.7), math.ceil(n * 0.6), math.floor(n * 1.1), int(n / 3), -(-n // 7), (5 - n) // 3,
            (5 - n) % 3, int(n**0.5), math.isqrt(n), int(math.log2(n)), int(n // 0.1), int(n % 0.7 * 10),
            math.gcd(n, 24, 60), math.gcd(36, n), math.lcm(n, 6), n.bit_length(), 1 << (n - 1).bit_length(),
            n >> 3 << 1, ~n,
            int(math.fmod(n, 7)), int(math.fmod(n / 4, 1.5) * 4), int(math.hypot(n, 4)), int(math.hypot(3 * n, 4 * n)),
        ]  # fmt: skip


def test_exact_like_python_at_every_size(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    anyshape.export(Numbers(), (torch.zeros(10, dtype=torch.int8),), path, dims={"x": "n"}, quick=True)
    session = onnxruntime.InferenceSession(path)
    everything = np.zeros(65_536, dtype=np.int8)
    wrong = {
        n: (got, Numbers.numbers(n))
        for n in range(1, 65_537)
        if (got := session.run(None, {"x": everything[:n]})[0].tolist()) != Numbers.numbers(n)
    }
    assert wrong == {}


def test_a_failing_export_leaves_the_names_as_they_were() -> None:
    def fails(x: Tensor) -> Tensor:
        return x.reshape(int(x.shape[0]), 10) + int(x.shape[1] * 0.5)

    before = dict(globals())
    names = (math.sqrt, np.prod, torch.linspace, torch.hann_window)
    with pytest.raises(anyshape.ExportError):
        anyshape.export(Of(fails), (torch.randn(3, 10),), dims={"x": "batch length"}, sizes={"length": "1..20"})
    assert {name: value for name, value in globals().items() if before.get(name) is not value} == {}
    assert (math.sqrt, np.prod, torch.linspace, torch.hann_window) == names


def test_the_result_names_what_was_repaired() -> None:
    model = Of(lambda x: x[:, : int(x.shape[1] * 0.5)])
    result: Any = anyshape.export(model, (torch.randn(3, 10),), dims={"x": "batch length"}, quick=True)
    assert result.repairs == ("int() of a size: computed in the file, as Python does",)


BESIDE_TENSORS = {
    "powers of sizes": lambda x: (x ** x.shape[1], x % (x.shape[1] / 3), x * (1 / x.shape[1])),
    "slopes of sizes": lambda x: (F.elu(x, 0.1 * x.shape[1]), torch.addcmul(x, x, x, value=x.shape[1] / 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE_TENSORS)
def test_a_size_beside_a_tensor(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(BESIDE_TENSORS[name], table, tmp_path / "m.onnx") == []


# ---- sizes divided by `torch.div` give the number that torch gives, also below zero


class Quotients(nn.Module):
    """Kinds of what `torch.div` returns while a trace runs."""

    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[0]
        self.down = type(torch.div(size, 2, rounding_mode="floor"))
        self.towards_zero = type(torch.div(size, 2, rounding_mode="trunc"))
        self.perhaps_negative = type(torch.div(size - 6, 4, rounding_mode="trunc"))
        self.fraction = type(torch.div(size, 2))
        return x * torch.div(size - 6, 4, rounding_mode="floor")


def test_a_size_stays_a_size_where_the_rounding_is_surely_the_same() -> None:
    model, varying = Quotients(), {"x": {0: torch.export.Dim.DYNAMIC}}
    with applied([DIVISIONS]) as acted:
        program = torch.export.export(model, (torch.ones(8),), dynamic_shapes=varying)
    assert acted.sentences == ["torch.div of a size: stays a size"]
    assert (model.down, model.towards_zero) == (torch.SymInt, torch.SymInt)
    assert issubclass(model.perhaps_negative, Tensor)
    assert issubclass(model.fraction, Tensor)
    assert [program.module()(torch.ones(size))[0].item() for size in (3, 5, 9, 14)] == [-1, -1, 0, 2]


# ---- tensors made of sizes hold those of the call


def _levels(x: Tensor) -> Tensor:
    """As detectors hold the shapes of their feature maps, one of them halved."""
    height, width = x.shape
    shapes = [(height, width), ((height + 1) // 2, (width + 1) // 2)]
    levels = torch.as_tensor(shapes, dtype=torch.long)
    starts = torch.cat((levels.new_zeros(1), levels.prod(1).cumsum(0)))
    scale = x.new_tensor([height / 2, width]) * torch.asarray([width, 3])
    return x.sum() + starts + torch.as_tensor(height) * 2 + (levels / scale).sum()


def _map(h: int, w: int) -> tuple[Tensor, ...]:
    return (torch.randn(h, w),)


def test_sizes_in_nested_containers_are_not_constants(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    result = exported(_levels, _map, ["h w"], {"h": 5, "w": 7}, path)
    assert [sentence for sentence in result.repairs if sentence.endswith("of sizes")] == [
        "torch.as_tensor: of sizes",
        "x.new_tensor: of sizes",
        "torch.asarray: of sizes",
    ]
    assert wrong_sizes(_levels, _map, [{"h": h, "w": w} for h, w in ((1, 1), (2, 9), (8, 3))], path) == []


# ---- values spread over a length that is a size: what torch gives, down to a length of one


SPREAD = {
    "linspace": lambda x: x * torch.linspace(-1, 2, x.shape[1]),
    "logspace": lambda x: x * torch.logspace(0, 1, x.shape[1], base=2.0),
    "periodic window": lambda x: x * torch.hann_window(x.shape[1]),
    "symmetric window": lambda x: x * torch.hamming_window(x.shape[1], periodic=False),
}


@pytest.mark.parametrize("name", SPREAD)
def test_values_spread_over_a_size(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(SPREAD[name], table, tmp_path / "m.onnx") == []


def test_a_product_of_nothing_or_of_whole_numbers_is_added() -> None:
    x, y = torch.arange(6.0).reshape(2, 3), torch.arange(12).reshape(3, 4)
    functions = {
        "of nothing": lambda x, y: (torch.addmm(x, x[:, :0], x[:0]), torch.addmm(x, x[:, :0], x[:0], beta=0.5)),
        "of whole numbers": lambda x, y: torch.addmm(y[:, :3], y, y.T, beta=2, alpha=3),
    }
    assert wrong_results(functions, x, y) == []
