"""`forward` calls that of its base class."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Base(nn.Module):
    def forward(self, values):
        return values.relu()


class Net(Base):
    def forward(self, x):
        return super().forward(x.view(4, 30)) + 1  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Base):
    def forward(self, x):
        return super().forward(x.flatten(1)) + 1


def right():
    torch.manual_seed(0)
    return Right().eval()
