"""Flattening and the layer stand in one `nn.Sequential`."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ seq"}
example = {"batch": 4, "seq": 7}
edit = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(3, 2, 3, padding=1), nn.Flatten(), nn.Linear(14, 5))

    def forward(self, x):
        return self.net(x)  # error: [pinned-dim] seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, 3, seq),)
