"""One name is used in two lines, so one edit frees both."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        b = 4  # error: [pinned-dim] batch
        flat = x.view(b, 30)
        pad = torch.zeros(b, 1)
        return torch.cat([flat, pad], dim=1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        b = x.shape[0]
        flat = x.view(b, 30)
        pad = torch.zeros(b, 1)
        return torch.cat([flat, pad], dim=1)


def right():
    torch.manual_seed(0)
    return Right().eval()
