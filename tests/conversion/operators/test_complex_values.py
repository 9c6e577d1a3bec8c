"""Complex values, which ONNX keeps as real ones with one more axis, and spectra whose length is a size."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.conversion.functions import exported, table, wrong_results, wrong_sizes, wrong_sizes_of

FUNCTIONS = {
    "complex": lambda x: torch.view_as_real(torch.polar(x, x)[:, None].expand(-1, 2, -1)[:, 1] ** 2),
    "exponential of complex": lambda x: torch.view_as_real(torch.exp(torch.complex(x, x * 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_values_of_any_size(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], table, tmp_path / "m.onnx") == []


def test_complex_values_filled_and_repeated(tmp_path: Path) -> None:
    def moved(x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.complex(x, -x).masked_fill(x > 0, 2.0).repeat(2, 1))

    assert wrong_sizes_of(moved, table, tmp_path / "m.onnx") == []


# ---- spectra: transforms to real values, their frequencies, and signals put together again


SPECTRA = {
    "there and back": lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[1]),
    "another norm": lambda x: torch.fft.irfft(torch.fft.rfft(x, norm="ortho"), n=x.shape[1], norm="ortho"),
    "frequencies": lambda x: x * torch.fft.fftfreq(x.shape[1], d=0.5),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_of_any_length(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(SPECTRA[name], table, tmp_path / "m.onnx") == []


class Halved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(8))

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        (x,) = tensors
        spectrum = torch.stft(x, 8, 4, window=self.window, return_complex=True)
        return torch.istft(spectrum * spectrum.abs().sigmoid(), 8, 4, window=self.window, length=x.shape[1])


def test_a_signal_is_put_together_to_its_length(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    result = exported(Halved(), table, ["b t"], {"b": 2, "t": 20}, path)
    assert "torch.istft: cut to the size at run time" in result.repairs
    assert wrong_sizes(Halved(), table, [{"b": 1, "t": 16}, {"b": 3, "t": 37}], path) == []


def test_complex_values_times_a_real_number() -> None:
    scaled = lambda x: tuple(torch.view_as_real(y) for y in (x.cfloat() * 2, 0.5 * x.cfloat(), x.cfloat() / 4))  # noqa: E731
    assert wrong_results({"scaled": scaled}, torch.tensor([1.0, -2.0, 0.0])) == []
    assert wrong_results({"cast": lambda x: torch.view_as_real(x.cfloat())}, torch.tensor([1.0, float("nan")])) == []


def test_conjugates_that_are_written_out() -> None:
    def conjugate(x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.view_as_complex(x).conj().resolve_conj())

    assert wrong_results({"resolve_conj": conjugate}, torch.randn(3, 2)) == []


# ---- what is done with pairs of floats


def _of(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.complex(x, -y), torch.complex(y, x + 1)


def test_quotients_sizes_and_logarithms_of_complex_values() -> None:
    functions = {
        "quotient": lambda x, y: torch.view_as_real(torch.complex(x, y) / torch.complex(y, x)),
        "by zero": lambda x, y: torch.view_as_real(torch.complex(x, y) / torch.complex(x * 0, y * 0)),
        "size": lambda x, y: torch.complex(x, y).abs(),
        "logarithm": lambda x, y: torch.view_as_real(torch.complex(x, y).log()),
    }
    x, y = torch.tensor([1e-30, 3e30, 2.0, -5.0]), torch.tensor([2e-30, -4e30, 3.0, 1.0])
    assert wrong_results(functions, x, y) == []


def test_products_of_complex_matrices() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randint(-5, 6, (3, 3), generator=generator).float() for _ in range(2))
    functions = {
        "matrices": lambda x, y: torch.view_as_real(torch.mm(*_of(x, y)) + torch.bmm(*(a[None] for a in _of(x, y)))[0]),
        "vectors": lambda x, y: torch.view_as_real(torch.mv(_of(x, y)[0], _of(x, y)[1][0])),
        "einsum": lambda x, y: torch.view_as_real(torch.einsum("ij,kj->ik", *_of(x, y))),
        "linear": lambda x, y: torch.view_as_real(F.linear(*_of(x, y), torch.complex(x[0], y[0]))),
    }
    assert wrong_results(functions, x, y) == []
