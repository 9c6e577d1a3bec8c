"""A learned query is repeated for four samples."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, 2, 8))

    def forward(self, x):
        query = self.query.repeat(4, 1, 1)  # error: [pinned-dim] batch
        return torch.bmm(query, x.transpose(1, 2)).softmax(-1) @ x


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        query = self.query.repeat(x.shape[0], 1, 1)
        return torch.bmm(query, x.transpose(1, 2)).softmax(-1) @ x


def right():
    torch.manual_seed(0)
    return Right().eval()
