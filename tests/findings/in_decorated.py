"""The number stands in a decorated function."""

from __future__ import annotations

import functools

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


def doubled(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return wrapper


@doubled
def flat(values):
    return values.view(4, 30)  # error: [pinned-dim] batch


class Net(nn.Module):
    def forward(self, x):
        return flat(x)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        return x.flatten(1) * 2


def right():
    torch.manual_seed(0)
    return Right().eval()
