"""The whole shape is a constant of the file."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
edit = None


SHAPE = [4, 30]


class Net(nn.Module):
    def forward(self, x):
        return x.reshape(SHAPE).relu()  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)
