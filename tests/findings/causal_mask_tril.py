"""A causal mask of six by six."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 2, "seq": 6}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        scores = self.linear(x) @ x.transpose(1, 2)
        mask = torch.ones(6, 6).tril()  # error: [pinned-dim] seq
        return scores.masked_fill(mask == 0, -1e9).softmax(-1) @ x


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        scores = self.linear(x) @ x.transpose(1, 2)
        mask = torch.ones(x.shape[1], x.shape[1]).tril()
        return scores.masked_fill(mask == 0, -1e9).softmax(-1) @ x


def right():
    torch.manual_seed(0)
    return Right().eval()
