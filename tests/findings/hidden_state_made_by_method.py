"""A method makes the state and sees no input."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
edit = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 5, batch_first=True)
        self.batch_size = 4

    def init_hidden(self):
        return torch.zeros(1, self.batch_size, 5)  # error: [pinned-dim] batch

    def forward(self, x):
        return self.rnn(x, self.init_hidden())[0]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
