"""The width of a smoothing kernel is chosen by the size of the signal; so is the padding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"signal": "batch 1 samples"}
sizes = {"batch": (2, [1]), "samples": (12, [1, 15, 16, 40])}
exports = True


class AdaptiveSmoothing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kernel3 = nn.Parameter(torch.randn(1, 1, 3))
        self.kernel7 = nn.Parameter(torch.randn(1, 1, 7))

    def forward(self, signal: Tensor) -> Tensor:
        kernel = self.kernel3 if signal.shape[-1] < 16 else self.kernel7
        kernel = kernel.softmax(dim=-1)
        smooth = F.conv1d(signal, kernel, padding=kernel.shape[-1] // 2)
        return signal - smooth


def model() -> nn.Module:
    torch.manual_seed(0)
    return AdaptiveSmoothing().eval()


def inputs(batch: int, samples: int) -> tuple[object, ...]:
    return (torch.randn(batch, 1, samples),)
