"""Parts of three and four steps, which are the example's length."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
edit = None


class Net(nn.Module):
    def forward(self, x):
        head, tail = torch.split(x, [3, 4], dim=1)  # error: [pinned-dim] seq
        return torch.cat([tail, head], dim=1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
