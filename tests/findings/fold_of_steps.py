"""`reshape(-1, 7, 8)` takes two samples for one where the length is another."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        rows = x.reshape(-1, 7, 8)  # warning: [mixed-batch] seq
        return rows.cumsum(1).reshape(x.shape)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        rows = x.reshape(-1, x.shape[1], 8)
        return rows.cumsum(1).reshape(x.shape)


def right():
    torch.manual_seed(0)
    return Right().eval()
