"""The sum and the division stand apart."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        total = x.exp().sum(-1)
        total = total.unsqueeze(-1)
        return x - total / 7  # warning: [frozen-value] seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq),)


class Right(Net):
    def forward(self, x):
        total = x.exp().sum(-1)
        total = total.unsqueeze(-1)
        return x - total / x.shape[-1]


def right():
    torch.manual_seed(0)
    return Right().eval()
