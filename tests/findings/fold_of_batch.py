"""`view(3, -1)` takes several samples for one where the batch is larger."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 3}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        rows = x.view(3, -1)  # warning: [mixed-batch] batch
        return rows.softmax(-1).view(x.shape)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 4),)


class Right(Net):
    def forward(self, x):
        rows = x.view(x.shape[0], -1)
        return rows.softmax(-1).view(x.shape)


def right():
    torch.manual_seed(0)
    return Right().eval()
