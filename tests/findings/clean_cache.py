"""Keys of the past and of the present."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _", "past": "batch past _"}
example = {"batch": 2, "seq": 3, "past": 5}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, past):
        keys = torch.cat([past, self.linear(x)], dim=1)
        mask = torch.ones(x.shape[1], keys.shape[1], dtype=torch.bool).tril(past.shape[1])
        scores = (x @ keys.transpose(1, 2)).masked_fill(~mask, -1e9)
        return scores.softmax(-1) @ keys, keys


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq, past):
    return (torch.randn(batch, seq, 8), torch.randn(batch, past, 8))
