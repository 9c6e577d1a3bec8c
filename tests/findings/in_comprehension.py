"""The number stands in a comprehension."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        parts = [part.view(4, 30) for part in (x, x.relu())]  # error: [pinned-dim] batch
        return torch.cat(parts, dim=1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        parts = [part.view(part.shape[0], 30) for part in (x, x.relu())]
        return torch.cat(parts, dim=1)


def right():
    torch.manual_seed(0)
    return Right().eval()
