"""`forward` is a function put into an instance."""

from __future__ import annotations

import types

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


def flat(self, x):
    return x.view(4, 30).relu()  # error: [pinned-dim] batch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = types.MethodType(flat, self)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(nn.Module):
    def forward(self, x):
        return x.flatten(1).relu()


def right():
    torch.manual_seed(0)
    return Right().eval()
