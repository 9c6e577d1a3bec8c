"""Letters of other alphabets and a tab stand before the expression."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        name = "größe 日本語"; y =	x.relu().view(4, 30)  # error: [pinned-dim] batch  # fmt: skip
        return y * len(name)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        y = x.relu().flatten(1)
        return y * 9


def right():
    torch.manual_seed(0)
    return Right().eval()
