"""Noise that is multiplied away, of the example's size."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        noise = torch.randn(4, 6) * 0  # error: [pinned-dim] batch
        return x + noise


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6),)


class Right(Net):
    def forward(self, x):
        noise = torch.randn(x.shape[0], 6) * 0
        return x + noise


def right():
    torch.manual_seed(0)
    return Right().eval()
