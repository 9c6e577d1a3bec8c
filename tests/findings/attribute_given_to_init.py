"""The batch is an argument of `__init__`, as in `Net(batch_size=4)`."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self, batch_size=4):
        super().__init__()
        self.batch_size = batch_size
        self.rnn = nn.GRU(5, 3, batch_first=True)

    def forward(self, x):
        state = torch.zeros(1, self.batch_size, 3)  # error: [pinned-dim] batch
        return self.rnn(x, state)[0]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 5),)


class Right(Net):
    def forward(self, x):
        state = torch.zeros(1, x.shape[0], 3)
        return self.rnn(x, state)[0]


def right():
    torch.manual_seed(0)
    return Right().eval()
