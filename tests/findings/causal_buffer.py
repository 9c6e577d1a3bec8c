"""A causal mask of fixed size is not cut."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 2, "seq": 1}]
safe = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(7, 7).tril())

    def forward(self, x):
        scores = x @ x.transpose(1, 2)
        scores = scores.masked_fill(self.mask == 0, -1e9)  # error: [pinned-dim] seq
        return scores.softmax(-1) @ x


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        scores = x @ x.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]] == 0, -1e9)
        return scores.softmax(-1) @ x


def right():
    torch.manual_seed(0)
    return Right().eval()
