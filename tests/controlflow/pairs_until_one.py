"""`while` on an axis of the tensor that it makes shorter: the number of turns is in no other size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "n 3"}
sizes = {"n": (6, [1, 2, 3, 5, 8, 17, 9000])}
exports = True


class Folded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        while x.shape[0] > 1:
            half = x.shape[0] // 2
            x = torch.cat([torch.tanh(x[:half] + x[half : 2 * half]), x[2 * half :]])
        return x


def model() -> nn.Module:
    torch.manual_seed(0)
    return Folded().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 3),)
