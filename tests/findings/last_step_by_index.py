"""The last step of each sample is taken with a counted index."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _", "lengths": "batch"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x, lengths):
        return x[torch.arange(4), lengths - 1]  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8), torch.randint(1, seq + 1, (batch,)))


class Right(Net):
    def forward(self, x, lengths):
        return x[torch.arange(x.shape[0]), lengths - 1]


def right():
    torch.manual_seed(0)
    return Right().eval()
