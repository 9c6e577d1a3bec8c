"""The number stands in a layer of another file, and a table in this one."""

from __future__ import annotations

import torch
from torch import nn

from tests.findings.parts.starting import Start

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = Start()

    def forward(self, x):
        order = torch.arange(7)  # error: [pinned-dim] seq
        return self.start(x)[:, :-1] * order[:, None]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        return torch.cat([torch.zeros_like(x[:, :1]), x], 1)[:, :-1] * torch.arange(x.shape[1])[:, None]


def right():
    torch.manual_seed(0)
    return Right().eval()
