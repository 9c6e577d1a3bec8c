"""Only one way of a conditional has the number."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.flat = True

    def forward(self, x):
        with torch.no_grad():
            return (x.view(4, 30) if self.flat else x) + 1  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        with torch.no_grad():
            return (x.view(-1, 30) if self.flat else x) + 1


def right():
    torch.manual_seed(0)
    return Right().eval()
