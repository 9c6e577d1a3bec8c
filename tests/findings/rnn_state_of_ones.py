"""A state with keywords for device and type."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(6, 5, batch_first=True)

    def forward(self, x):
        state = torch.ones(1, 4, 5, device=x.device, dtype=x.dtype)  # error: [pinned-dim] batch
        return self.rnn(x, state)[0]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 6),)


class Right(Net):
    def forward(self, x):
        state = torch.ones(1, x.shape[0], 5, device=x.device, dtype=x.dtype)
        return self.rnn(x, state)[0]


def right():
    torch.manual_seed(0)
    return Right().eval()
