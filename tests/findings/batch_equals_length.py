"""Batch and length are alike in the example."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 6, "seq": 6}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        heads = x.reshape(6, 6, 2, 4)  # error: [pinned-dim] batch, seq
        return heads.transpose(1, 2).flatten(2)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        heads = x.reshape(x.shape[0], x.shape[1], 2, 4)
        return heads.transpose(1, 2).flatten(2)


def right():
    torch.manual_seed(0)
    return Right().eval()
