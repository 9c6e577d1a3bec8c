"""Whole numbers in tensors without axes follow the size: what is padded, cut or asked by them is right at all sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape
from anyshape.conversion.operators.held_numbers import HELD_NUMBERS, Ratio
from anyshape.conversion.operators.repair import applied
from tests.running import is_right

_SENTENCE = "whole numbers in tensors: computed from the sizes"


class Padded(nn.Module):
    """A convolution that pads to whole strides, its numbers in buffers."""

    stride: Tensor
    kernel_size: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 5, 3)
        self.register_buffer("stride", torch.tensor(3), persistent=False)
        self.register_buffer("kernel_size", torch.tensor(5), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        length, padding = x.shape[-1], self.kernel_size - self.stride
        frames = torch.ceil((length - self.kernel_size + padding) / self.stride + 1).to(torch.int64) - 1
        missing = frames * self.stride + self.kernel_size - padding - length
        longest = max(padding, missing)
        extra: Any = 0
        if length <= longest:
            extra = longest - length + 1
            x = F.pad(x, (0, extra))
        x = F.pad(x, (padding, missing), "reflect")
        return self.conv(x[..., : x.shape[-1] - extra])


@pytest.mark.parametrize("shortest", [1, 8])
def test_padding_by_numbers_in_buffers_is_right_at_every_length(shortest: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = Padded().eval(), tmp_path / "model.onnx"
    example = torch.randn(2, 2, 20)
    result = anyshape.export(model, (example,), path, dims={"x": "batch 2 n"}, sizes={"n": f"{shortest}..200"})
    assert _SENTENCE in result.repairs
    lengths = [n for n in (1, 2, 3, 4, 5, 8, 9, 10, 33) if n >= shortest]
    assert [n for n in lengths if not is_right(path, model, (torch.randn(1, 2, n),))] == []


class Read(nn.Module):
    """Numbers that are read while a trace runs."""

    fixed: Tensor
    counter: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fixed", torch.tensor(3))
        self.register_buffer("counter", torch.tensor(7))

    def forward(self, x: Tensor, given: Tensor) -> Tensor:
        self.held = self.fixed.item()
        self.rest = ((x.shape[0] - self.fixed) // 4 * 4 % 7).item()
        self.half = (x.shape[0] / (self.fixed - 1)).item()
        self.given = given.item()
        self.counter += 1
        self.counted = self.counter.item()
        return x * self.rest


def test_only_what_is_sure_is_known() -> None:
    model, varying = Read(), {"x": {0: torch.export.Dim.DYNAMIC}, "given": None}
    with applied([HELD_NUMBERS]) as acted:
        program = torch.export.export(model, (torch.ones(20), torch.tensor(5)), dynamic_shapes=varying)
    assert acted.sentences == [_SENTENCE]
    assert model.held == 3
    unknown: tuple[Any, ...] = (model.given, model.counted)
    assert all(isinstance(one, torch.SymInt) for one in unknown)
    assert isinstance(model.half, torch.SymFloat)
    results = [program.module()(torch.ones(n), torch.tensor(5))[0].item() for n in (9, 13, 20, 31)]
    assert results == [(n - 3) // 4 * 4 % 7 for n in (9, 13, 20, 31)]


def test_ratios_are_exact() -> None:
    third = Ratio(7).by(Ratio(3))
    assert third is not None
    assert (third.ceil(), third.floor()) == (Ratio(3), Ratio(2))
    assert Ratio(-7).floor_by(Ratio(3)) == Ratio(-3)
    assert Ratio(-7).rest(Ratio(3)) == Ratio(2)
    assert Ratio(7).by(Ratio(-3)) is None
    assert third.minus(Ratio(2)).times(Ratio(3)).floor() == Ratio(1)
