"""Another batch is refused by the model's own `raise`."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 4}
edit = None


class Net(nn.Module):
    def forward(self, x):
        if x.shape[0] != 4:  # error: [pinned-dim] batch
            raise ValueError("four samples")
        return x.softmax(-1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6),)
