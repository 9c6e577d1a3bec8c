"""A mask of fixed size is cut to the length."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 3, "seq": 12}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(12, 12).tril())

    def forward(self, x):
        t = x.size(1)
        scores = x @ x.transpose(1, 2)
        return scores.masked_fill(self.mask[:t, :t] == 0, -1e9).softmax(-1) @ x


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
