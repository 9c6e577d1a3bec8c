"""A window of the last three rows, in a deque and in a list that is cut at its start."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor, nn

dims = {"x": "n 3"}
sizes = {"n": (6, [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 17])}
exports = True


class Windows(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        window: deque[Tensor] = deque(maxlen=3)
        others: list[Tensor] = []
        means = []
        for row in x:
            window.append(row)
            others.append(row * 2)
            if len(others) > 2:
                others.pop(0)
            means.append(torch.stack(list(window)).mean(0) + torch.stack(others).amax(0))
        return torch.stack(means)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Windows().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 3),)
