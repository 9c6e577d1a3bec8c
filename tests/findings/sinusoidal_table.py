"""A table of sines in a part of the model is not cut."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 2, "seq": 1}]
safe = False


class Encoding(nn.Module):
    def __init__(self):
        super().__init__()
        angles = torch.arange(7)[:, None] * torch.exp(-torch.arange(0, 8, 2) / 4)
        self.register_buffer("table", torch.cat([angles.sin(), angles.cos()], dim=1))

    def forward(self, values):
        return values + self.table  # error: [pinned-dim] seq


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoding = Encoding()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(self.encoding(x))


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        return self.linear(x + self.encoding.table[: x.shape[1]])


def right():
    torch.manual_seed(0)
    return Right().eval()
