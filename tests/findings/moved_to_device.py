"""Zeros are moved to the input's device, in one chain."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        pad = torch.zeros((4, 2, 5)).to(x.device).type_as(x)  # error: [pinned-dim] batch
        return torch.cat([x, pad], dim=1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        pad = torch.zeros((x.shape[0], 2, 5)).to(x.device).type_as(x)
        return torch.cat([x, pad], dim=1)


def right():
    torch.manual_seed(0)
    return Right().eval()
