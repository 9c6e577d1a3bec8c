"""Functions that ONNX has no operator for, right at sizes never traced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F

from tests.conversion.functions import exported, table, wrong_results, wrong_sizes_of

FUNCTIONS = {
    "gamma": lambda x: (torch.lgamma(x * 4), torch.lgamma(x.abs() + 0.01), torch.digamma(x * 3), torch.polygamma(1, x)),
    "normal": lambda x: (torch.erfinv(x.tanh()), torch.special.ndtri(x.sigmoid())),
    "pairs": lambda x: (torch.hypot(x, x + 1), torch.copysign(x, x.flip(1)), torch.fmax(x, x.flip(0))),
    "logarithms of sums": lambda x: (F.logsigmoid(x * 60), torch.logaddexp(x * 80, x), torch.logaddexp2(x * 200, -x)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_without_an_operator(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], table, tmp_path / "m.onnx") == []


def test_logarithms_keep_their_digits_far_out(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    both = lambda x: (F.logsigmoid(x), torch.logaddexp(x, torch.zeros_like(x)))  # noqa: E731
    exported(both, lambda n: (torch.randn(n, generator=torch.Generator().manual_seed(0)),), ["n"], {"n": 4}, path)
    x = torch.tensor([-torch.inf, -1e4, -120.0, -15.0, -1e-4, 0.0, 15.0, 120.0, 1e4, torch.inf])
    session = onnxruntime.InferenceSession(path)
    for given, want in zip(session.run(None, {session.get_inputs()[0].name: x.numpy()}), both(x), strict=True):
        np.testing.assert_allclose(given, want.numpy(), rtol=1e-6)


def test_the_gamma_family_at_its_poles_and_close_to_them() -> None:
    x = torch.tensor([-2.5, -2.0, -1.0, -1e-30, -0.0, 0.0, 1e-30, 0.25, 0.5, 1.0, 2.0, 3.5, 100.0, torch.nan])
    functions = {
        "lgamma": torch.lgamma,
        "digamma": torch.digamma,
        "polygamma": lambda x: (torch.polygamma(2, x), torch.polygamma(5, x), torch.polygamma(1, x.abs())),
        "of whole numbers": lambda x: (torch.lgamma(x.abs().nan_to_num().long()), torch.digamma(x > 0)),
    }
    assert wrong_results(functions, x) == []


def test_tails_of_the_error_function_keep_their_digits() -> None:
    x = torch.tensor([-9.0, -5, -1, -0.5, 0, 1e-5, 0.5, 1, 2, 5, 9, 27, 50, 1e4, float("inf"), float("nan")])
    functions = {
        "erfc": lambda x: torch.erfc(x.clamp(max=9)),
        "erfcx": torch.special.erfcx,
        "log_ndtr": lambda x: (torch.special.log_ndtr(x), torch.special.log_ndtr(-x)),
        "whole": lambda x: torch.erfc((x.nan_to_num().clamp(-9, 4)).to(torch.int64)),
        "ndtri": lambda x: torch.special.ndtri(torch.stack([x / 100, 10 ** -x.abs(), torch.ones_like(x), 1 - x / 1e5])),
    }
    assert wrong_results(functions, x) == []
