"""Two states of an LSTM of two layers and two directions: neither alone helps, and 4 is not the batch."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 3, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x):
        h = torch.zeros(4, 3, 5)  # error: [pinned-dim] batch
        c = torch.zeros(4, 3, 5)  # error: [pinned-dim] batch
        out, _ = self.lstm(x, (h, c))
        return out


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 6),)


class Right(Net):
    def forward(self, x):
        h = torch.zeros(4, x.shape[0], 5)
        c = torch.zeros(4, x.shape[0], 5)
        out, _ = self.lstm(x, (h, c))
        return out


def right():
    torch.manual_seed(0)
    return Right().eval()
