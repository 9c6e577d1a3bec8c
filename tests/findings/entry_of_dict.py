"""The number is an entry of a dict."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = {"batch": 4, "width": 30}

    def forward(self, x):
        return x.view(self.sizes["batch"], self.sizes["width"]).relu()  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        return x.view(x.shape[0], self.sizes["width"]).relu()


def right():
    torch.manual_seed(0)
    return Right().eval()
