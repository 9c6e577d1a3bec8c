"""The state is an input with an axis of its own."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _", "state": "_ batch _"}
example = {"batch": 2, "seq": 5}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 5, num_layers=2, batch_first=True)

    def forward(self, x, state):
        return self.rnn(x, state)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8), torch.randn(2, batch, 5))
