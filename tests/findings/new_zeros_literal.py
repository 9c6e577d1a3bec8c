"""`new_zeros` with a keyword and a tuple."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        pad = x.new_zeros(size=(4, 1, 8))  # error: [pinned-dim] batch
        return torch.cat([x, pad], dim=1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        pad = x.new_zeros(size=(x.shape[0], 1, 8))
        return torch.cat([x, pad], dim=1)


def right():
    torch.manual_seed(0)
    return Right().eval()
