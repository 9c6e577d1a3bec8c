"""The number stands in another method."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        return self._flat(x) * 2

    def _flat(self, values):
        return values.reshape(4, 30)  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def _flat(self, values):
        return values.reshape(-1, 30)


def right():
    torch.manual_seed(0)
    return Right().eval()
