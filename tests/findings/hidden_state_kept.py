"""The state is a plain attribute, made for a batch of four."""

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
        self.hidden = torch.zeros(1, 4, 5)

    def forward(self, x):
        return self.rnn(x, self.hidden)[0]  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
