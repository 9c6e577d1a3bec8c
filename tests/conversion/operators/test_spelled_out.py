"""Functions that no trace or translation of torch's follows, at values and sizes at which they may be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.conversion.functions import exported, wrong_sizes


def _rows(n: int) -> tuple[Any, ...]:
    return torch.randn(3, n), torch.rand(n)


def _logits(n: int) -> tuple[Any, ...]:
    return 3 * torch.randn(n, 5), torch.arange(n) % 5


def _steps(t: int, b: int) -> tuple[Any, ...]:
    return torch.randn(t, b, 5), torch.randint(1, 5, (b, 3))


def _losses(x: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, ...]:
    weight, some = torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0]), torch.where(labels == 1, -100, labels)
    return (
        F.cross_entropy(x, labels, label_smoothing=0.1),
        F.cross_entropy(x, some, weight, label_smoothing=0.2, reduction="sum"),
        F.cross_entropy(x, some, weight, label_smoothing=0.2, reduction="none"),
        F.cross_entropy(x, some, weight, label_smoothing=0.2) + F.cross_entropy(x, x.softmax(1), weight),
    )


def _alignments(x: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, ...]:
    steps = torch.full((x.shape[1],), x.shape[0])
    lengths = torch.full((x.shape[1],), 2)
    logs = x.log_softmax(-1)
    return (
        F.ctc_loss(logs, labels, steps, lengths, zero_infinity=True),
        F.ctc_loss(logs, labels, steps, lengths + 1, blank=4, reduction="none"),
    )


CASES = {
    "covariance": (lambda x, w: (x.cov(), torch.cov(x, aweights=w, correction=0)), _rows, ["3 n", "n"], "n"),
    "correlation": (lambda x, w: (torch.corrcoef(x), w.cov()), _rows, ["3 n", "n"], "n"),
    "cross entropy": (_losses, _logits, ["n 5", "n"], "n"),
    "alignments": (_alignments, _steps, ["t b 5", "b 3"], "tb"),
}


@pytest.mark.parametrize("name", CASES)
def test_right_at_every_size(name: str, tmp_path: Path) -> None:
    function, make, dims, names = CASES[name]
    exported(function, make, dims, dict.fromkeys(names, 6), tmp_path / "m.onnx")
    sizes = [dict.fromkeys(names, size) for size in (2, 5, 9)]
    assert wrong_sizes(function, make, sizes, tmp_path / "m.onnx") == []


def test_as_many_classes_as_the_values_tell(tmp_path: Path) -> None:
    make = lambda n: (torch.arange(n) ** 2 % 7,)  # noqa: E731
    exported(F.one_hot, make, ["n"], {"n": 4}, tmp_path / "m.onnx")
    assert wrong_sizes(F.one_hot, make, [{"n": 1}, {"n": 3}, {"n": 12}], tmp_path / "m.onnx") == []


def test_steps_of_each_channel(tmp_path: Path) -> None:
    scale, zero = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 0, -3], dtype=torch.int32)

    def stepped(x: torch.Tensor) -> torch.Tensor:
        return torch.fake_quantize_per_channel_affine(x, scale, zero, 1, -128, 127)

    def wide(n: int, m: int) -> tuple[Any, ...]:
        return (torch.cat([torch.randn(n, 3, m) * 30, torch.full((n, 3, 1), 0.25)], 2),)

    exported(stepped, wide, ["n 3 m+1"], {"n": 2, "m": 4}, tmp_path / "model.onnx")
    assert wrong_sizes(stepped, wide, [{"n": 1, "m": 1}, {"n": 3, "m": 7}], tmp_path / "model.onnx") == []
