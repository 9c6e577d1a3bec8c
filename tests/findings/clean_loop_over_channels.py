"""A loop over three static channels, with a batch of three."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ seq"}
example = {"batch": 3, "seq": 5}


class Net(nn.Module):
    def forward(self, x):
        return torch.stack([x[:, i] * (i + 1) for i in range(3)], dim=1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, 3, seq),)
