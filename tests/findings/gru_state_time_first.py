"""The batch is the second axis of the input, and of the state."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "seq batch _"}
example = {"seq": 7, "batch": 3}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 5)

    def forward(self, x):
        state = torch.zeros(1, 3, 5)  # error: [pinned-dim] batch
        return self.gru(x, state)[0]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(seq, batch):
    return (torch.randn(seq, batch, 6),)


class Right(Net):
    def forward(self, x):
        state = torch.zeros(1, x.shape[1], 5)
        return self.gru(x, state)[0]


def right():
    torch.manual_seed(0)
    return Right().eval()
