"""The method that makes the state is given a number."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 5, batch_first=True)

    def init_hidden(self, count):
        return torch.zeros(1, count, 5)

    def forward(self, x):
        hidden = self.init_hidden(4)  # error: [pinned-dim] batch
        return self.rnn(x, hidden)[0]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        hidden = self.init_hidden(x.shape[0])
        return self.rnn(x, hidden)[0]


def right():
    torch.manual_seed(0)
    return Right().eval()
