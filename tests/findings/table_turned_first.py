"""The table is turned before it is added."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ seq"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 2, "seq": 1}]
safe = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(7, 8))

    def forward(self, x):
        turned = self.table.unsqueeze(0).transpose(1, 2)  # error: [pinned-dim] seq
        return x + turned


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, 8, seq),)


class Right(Net):
    def forward(self, x):
        turned = self.table[: x.shape[2]].unsqueeze(0).transpose(1, 2)
        return x + turned


def right():
    torch.manual_seed(0)
    return Right().eval()
