"""With one sample in the example, `view(1, -1, 8)` makes all samples one."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 1, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        rows = x.reshape(1, -1, 8)  # warning: [mixed-batch] batch
        return rows.cumsum(1).view(x.shape)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        rows = x.reshape(x.shape[0], -1, 8)
        return rows.cumsum(1).view(x.shape)


def right():
    torch.manual_seed(0)
    return Right().eval()
