"""Three lines write three dims."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _", "memory": "batch places _"}
example = {"batch": 4, "seq": 7, "places": 5}
others = [
    {"batch": 1, "seq": 3, "places": 2},
    {"batch": 4, "seq": 8, "places": 5},
    {"batch": 4, "seq": 7, "places": 9},
    {"batch": 6, "seq": 7, "places": 5},
]


class Net(nn.Module):
    def forward(self, x, memory):
        x = x + torch.arange(7)[:, None]  # error: [pinned-dim] seq
        memory = memory * torch.linspace(0, 1, 5)[:, None]  # error: [pinned-dim] places
        scores = x @ memory.transpose(1, 2)
        return scores + torch.zeros(4, 1, 1).expand(4, 7, 5)  # error: [pinned-dim] batch, seq, places


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq, places):
    return (torch.randn(batch, seq, 8), torch.randn(batch, places, 8))


class Right(Net):
    def forward(self, x, memory):
        x = x + torch.arange(x.shape[1])[:, None]
        memory = memory * torch.linspace(0, 1, memory.shape[1])[:, None]
        scores = x @ memory.transpose(1, 2)
        return scores + 0


def right():
    torch.manual_seed(0)
    return Right().eval()
