"""A cell runs over as many steps as the example has."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 5)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 5)
        for step in range(7):  # warning: [frozen-value] seq
            state = self.cell(x[:, step], state)
        return state


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        state = x.new_zeros(x.shape[0], 5)
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return state


def right():
    torch.manual_seed(0)
    return Right().eval()
