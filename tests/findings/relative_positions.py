"""Distances between positions, counted twice in one line."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(9, 1)

    def forward(self, x):
        steps = torch.arange(7)[:, None] - torch.arange(7)  # error: [pinned-dim] seq # error: [pinned-dim] seq
        bias = self.bias(steps.clamp(-4, 4) + 4).squeeze(-1)
        return (x @ x.transpose(1, 2) + bias).softmax(-1) @ x


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        steps = torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])
        bias = self.bias(steps.clamp(-4, 4) + 4).squeeze(-1)
        return (x @ x.transpose(1, 2) + bias).softmax(-1) @ x


def right():
    torch.manual_seed(0)
    return Right().eval()
