"""Normalisation is as exact as PyTorch's, also of values that lie close together."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.conversion.functions import exported, wrong_sizes
from tests.running import load


class Twice(nn.Module):
    """With weights over a map, and without over its means."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, 8, dtype=dtype)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        (x,) = tensors
        return self.norm(x), nn.functional.group_norm(x.mean((2, 3)), 2)


def _map(dtype: torch.dtype, n: int, h: int, w: int) -> tuple[Tensor]:
    """Far from zero, and close together."""
    return (torch.randn(n, 8, h, w, dtype=dtype) * 0.05 + 10,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_small_variance_beside_a_large_mean_is_kept(dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = Twice(dtype).eval(), tmp_path / "model.onnx"
    make = partial(_map, dtype)
    exported(model, make, ["n 8 h w"], {"n": 2, "h": 5, "w": 7}, path)
    sizes = [{"n": n, "h": h, "w": w} for n, h, w in ((1, 1, 1), (1, 1, 2), (3, 2, 2), (2, 9, 6))]
    assert wrong_sizes(model, make, sizes, path) == []


class Norms(nn.Module):
    """Few values in a group, an epsilon that counts, and layers that go by one channel."""

    def __init__(self) -> None:
        super().__init__()
        self.groups, self.channels = nn.GroupNorm(3, 6, 0.002), nn.InstanceNorm2d(6, affine=True)
        self.kept = nn.InstanceNorm2d(6, track_running_stats=True)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (x,) = tensors
        return self.groups(x), self.channels(x), self.kept(x)


class Moments(nn.Module):
    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        (x,) = tensors
        free = x.var(1), x.std(dim=(0, 2), keepdim=True), torch.var(x, dim=-1, correction=0), x.std()
        return *torch.var_mean(x, unbiased=False), *torch.std_mean(x, dim=1), *free


SCALES = {"plain": (1.0, 0.0), "large": (1e3, 0.0), "far from zero": (1.0, 1e3), "small": (1e-3, 0.0)}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("model", [Norms(), Moments()], ids=["norms", "moments"])
def test_no_more_digits_are_lost_than_in_pytorch(model: nn.Module, scale: str, tmp_path: Path) -> None:
    factor, shift = SCALES[scale]

    def make(n: int, h: int) -> tuple[Tensor]:
        return (torch.randn(n, 6, h, 3) * factor + shift,)

    path = tmp_path / "m.onnx"
    exported(model.eval(), make, ["n 6 h 3"], {"n": 2, "h": 5}, path)
    session = load(path)
    (name,) = (given.name for given in session.get_inputs())
    for n, h in ((2, 1), (3, 2), (1, 40), (5, 300)):
        (x,) = make(n, h)
        wide = model.double()(x.double())
        plain = model.float()(x)
        for got, want, exact in zip(session.run(None, {name: x.numpy()}), plain, wide, strict=True):
            # that of one value at least: PyTorch may be lucky
            noise = (want - exact).abs().max() + 1e-6 * exact.abs().max()
            assert (torch.from_numpy(got) - exact).abs().max() <= 3 * noise
