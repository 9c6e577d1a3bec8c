"""Three steps are unpacked into three names."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 3}
edit = None


class Net(nn.Module):
    def forward(self, x):
        a, b, c = x.unbind(1)  # error: [pinned-dim] seq
        return a + 2 * b + 3 * c


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
