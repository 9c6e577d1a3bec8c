"""The arguments of a call stand in lines of their own."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        bias = torch.zeros(  # error: [pinned-dim] batch
            4,  # samples
            1,
            5,
        )
        return torch.cat([bias, x], dim=1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        bias = torch.zeros(
            x.shape[0],
            1,
            5,
        )
        return torch.cat([bias, x], dim=1)


def right():
    torch.manual_seed(0)
    return Right().eval()
