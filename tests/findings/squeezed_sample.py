"""`squeeze(0)` and `unsqueeze(0)` around a layer, right for one sample only."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 1}
edit = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        row = x.squeeze(0)
        return self.head(row).view(6, 3)[None]  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)
