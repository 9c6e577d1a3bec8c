"""A tensor with one literal for each sample: nothing can be put in its place."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 3}
edit = None


class Net(nn.Module):
    def forward(self, x):
        weights = torch.tensor([0.5, 1.0, 1.5])  # error: [pinned-dim] batch
        return x * weights[:, None]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 4),)
