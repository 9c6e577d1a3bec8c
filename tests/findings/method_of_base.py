"""The number stands in the class that the model inherits from."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Base(nn.Module):
    def merge(self, values):
        return values.view(4, 30)  # error: [pinned-dim] batch


class Net(Base):
    def forward(self, x):
        return self.merge(x.relu())


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        return x.relu().view(-1, 30)


def right():
    torch.manual_seed(0)
    return Right().eval()
