"""A table that is not cut, and a number."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 6, "seq": 7}]
safe = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(7, 8))

    def forward(self, x):
        x = x + self.positions  # error: [pinned-dim] seq
        return torch.cat([torch.zeros(4, 1, 8), x], dim=1)  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        x = x + self.positions[: x.shape[1]]
        return torch.cat([x.new_zeros(x.shape[0], 1, 8), x], dim=1)


def right():
    torch.manual_seed(0)
    return Right().eval()
