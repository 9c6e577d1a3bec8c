"""The second input has no declared axes."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 4}
edit = None


class Net(nn.Module):
    def forward(self, x, bias):
        return x + bias  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6), torch.randn(4, 6))
