"""One chunk for each sample of the example, so other batches lose samples."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 3}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        rows = x.chunk(3, dim=0)  # warning: [frozen-value] batch
        return torch.stack([self.linear(row[0]) for row in rows])


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 8),)


class Right(Net):
    def forward(self, x):
        rows = x.chunk(x.shape[0], dim=0)
        return torch.stack([self.linear(row[0]) for row in rows])


def right():
    torch.manual_seed(0)
    return Right().eval()
