"""Tokens, not floats, are reshaped."""

from __future__ import annotations

import torch
from torch import nn

dims = {"tokens": "batch _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 3)

    def forward(self, tokens):
        pairs = tokens.view(4, 3, 2)  # error: [pinned-dim] batch
        return self.table(pairs).sum(2)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randint(0, 20, (batch, 6)),)


class Right(Net):
    def forward(self, tokens):
        pairs = tokens.view(-1, 3, 2)
        return self.table(pairs).sum(2)


def right():
    torch.manual_seed(0)
    return Right().eval()
