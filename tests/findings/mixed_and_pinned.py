"""One line pins the length, another mixes samples."""

from __future__ import annotations

import torch
from torch import nn

dims = {'x': 'batch seq _'}
example = {'batch': 4, 'seq': 7}
edit = None


class Net(nn.Module):
    def forward(self, x):
        x = x * torch.arange(7)[:, None]  # error: [pinned-dim] seq
        return x.softmax(0)  # warning: [mixed-batch] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
