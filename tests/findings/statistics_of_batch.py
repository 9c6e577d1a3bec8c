"""A normalisation without running statistics."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 4}
edit = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6, track_running_stats=False)

    def forward(self, x):
        return self.norm(x)  # warning: [mixed-batch] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6),)
