"""Every size is taken from the input."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 5, batch_first=True)
        self.token = nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, x):
        x = torch.cat([self.token.expand(x.size(0), -1, -1), x], dim=1)
        state = torch.zeros(1, x.size(0), 5)
        return self.lstm(x, (state, state))[0] + torch.arange(x.size(1))[:, None]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
