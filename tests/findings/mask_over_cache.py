"""Queries by all keys: the number is past plus present."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "_ seq _", "past": "_ past _"}
example = {"seq": 5, "past": 7}
others = [{"seq": 3, "past": 4}, {"seq": 5, "past": 9}, {"seq": 6, "past": 7}]


class Net(nn.Module):
    def forward(self, x, past):
        keys = torch.cat([past, x], dim=1)
        mask = torch.ones(5, 12).tril(7)  # error: [pinned-dim] seq, past
        scores = x @ keys.transpose(1, 2)
        return scores.masked_fill(mask == 0, -1e9).softmax(-1) @ keys


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(seq, past):
    return (torch.randn(2, seq, 8), torch.randn(2, past, 8))


class Right(Net):
    def forward(self, x, past):
        keys = torch.cat([past, x], dim=1)
        mask = torch.ones(x.shape[1], keys.shape[1]).tril(past.shape[1])
        scores = x @ keys.transpose(1, 2)
        return scores.masked_fill(mask == 0, -1e9).softmax(-1) @ keys


def right():
    torch.manual_seed(0)
    return Right().eval()
