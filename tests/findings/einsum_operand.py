"""A matrix of ones in an einsum."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        lower = torch.ones(7, 7).tril()  # error: [pinned-dim] seq
        return torch.einsum("bsd,ts->btd", x, lower)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        lower = torch.ones(x.shape[1], x.shape[1]).tril()
        return torch.einsum("bsd,ts->btd", x, lower)


def right():
    torch.manual_seed(0)
    return Right().eval()
