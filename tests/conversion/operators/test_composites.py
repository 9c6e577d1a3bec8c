"""Normalisation is as exact as PyTorch's, also of values that lie close together."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import anyshape
from tests.conversion.functions import exported, image, wrong_results, wrong_sizes
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


@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
def test_moments_of_nothing_and_of_infinities() -> None:
    x = torch.tensor([[1.0, torch.inf, 2.0], [1.0, 2.0, 3.0], [3.0, torch.nan, 3.0]])
    functions = {
        "var": lambda x: (x.var(1, correction=3), x.var((0, 1), correction=9), x.std(1), x[1, :1].var()),
        "with means": lambda x: (*torch.var_mean(x, 1), *torch.std_mean(x[:, :0], 1), *torch.var_mean(x[1, :1], 0)),
    }
    assert wrong_results(functions, x) == []


def test_a_softmax_is_computed_in_the_type_that_is_asked_for() -> None:
    x = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    functions = {
        "in double": lambda x: (x.softmax(1, dtype=torch.float64) - 0.2) * 1e9,
        "logarithm": lambda x: (x * torch.tensor([1.0, torch.nan, 1, 1, 1])).log_softmax(0, dtype=torch.float64),
        "of whole numbers": lambda x: ((9 * x).long().softmax(0, torch.float32), x[0, 0].softmax(0)),
    }
    assert wrong_results(functions, x) == []


def test_a_mean_of_nothing_is_no_number() -> None:
    functions = {
        "masked": lambda x: (x[x > 5].mean(), x[x > 5][None].mean(1, keepdim=True), x[x > 0].mean()),
        "of no rows": lambda x: (x[:0].mean(0), x[:0].mean()),
        "complex": lambda x: torch.view_as_real(x.cfloat()),
    }
    assert wrong_results(functions, torch.tensor([[-1.0, 2.0], [3.0, 4.0]])) == []


def test_a_mean_over_many_numbers_that_are_alike_keeps_its_digits() -> None:
    """Added up one by one, 160,000 numbers in ties lose the fifth digit."""
    x = torch.randint(-1, 2, (10, 1, 128, 128), generator=torch.Generator().manual_seed(0)).float()
    model = nn.BatchNorm2d(1, affine=False, track_running_stats=False).eval()
    result = anyshape.export(model, (x,), dims={}, quick=True)
    torch.testing.assert_close(result(x)[0], model(x), rtol=1e-6, atol=1e-6)


class Doubled(nn.Module):
    """Halved and doubled again, to the size that it had."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1)

    def forward(self, *tensors: Tensor) -> Tensor:
        (x,) = tensors
        return self.up(self.down(x), output_size=x.shape[-2:])  # type: ignore[no-any-return]


def test_a_transposed_convolution_to_a_size_that_varies(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    exported(Doubled(), image, ["b 3 h w"], {"b": 2, "h": 9, "w": 8}, path)
    model, sizes = load(path), [{"b": 1, "h": 5, "w": 7}, {"b": 2, "h": 6, "w": 11}]
    assert [model.run(None, {"tensors.0": image(**one)[0].numpy()})[0].shape for one in sizes] == [
        (1, 3, 5, 7), (2, 3, 6, 11)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "shape"),
    [(nn.InstanceNorm2d(3, affine=True), (2, 3, 96, 96)), (nn.GroupNorm(2, 4), (2, 4, 96, 96))],
)
def test_rows_of_thousands_keep_their_digits(module: nn.Module, shape: tuple[int, ...]) -> None:
    """A runtime adds up one by one: of three values in ties that was ten times the rounding noise."""
    assert anyshape.export(module, torch.randn(shape), dims={}, quick=True).verdict == "checked"
