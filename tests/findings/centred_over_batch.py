"""The mean over all samples is taken away."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 4}
edit = None


class Net(nn.Module):
    def forward(self, x):
        return x - x.mean(0)  # warning: [mixed-batch] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6),)
