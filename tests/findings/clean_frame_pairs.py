"""Two frames are one: only even lengths, which is a limit of the model's own."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 3, "seq": 6}


class Net(nn.Module):
    def forward(self, x):
        b, t, d = x.shape
        return x.view(b, t // 2, 2 * d)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
