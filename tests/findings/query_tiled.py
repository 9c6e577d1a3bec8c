"""`tile` with a tuple."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(5))

    def forward(self, x):
        scale = self.scale.tile((4, 1))  # error: [pinned-dim] batch
        return torch.stack([scale, x], dim=1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 5),)


class Right(Net):
    def forward(self, x):
        scale = self.scale.tile((x.shape[0], 1))
        return torch.stack([scale, x], dim=1)


def right():
    torch.manual_seed(0)
    return Right().eval()
