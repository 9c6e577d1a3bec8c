"""A hook reshapes what a layer gives."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


def flat(layer, inputs, output):
    return output.view(4, 30)  # error: [pinned-dim] batch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 5)
        self.linear.register_forward_hook(flat)

    def forward(self, x):
        return self.linear(x) * 2


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        return F.linear(x, self.linear.weight, self.linear.bias).flatten(1) * 2


def right():
    torch.manual_seed(0)
    return Right().eval()
