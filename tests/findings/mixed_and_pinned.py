"""One line pins the length, another mixes samples."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]
without_edit = ["mixed-batch"]


class Net(nn.Module):
    def forward(self, x):
        x = x * torch.arange(7)[:, None]  # error: [pinned-dim] seq
        return x.softmax(0)  # warning: [mixed-batch] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        x = x * torch.arange(x.shape[1])[:, None]
        return x.softmax(0)


def right():
    torch.manual_seed(0)
    return Right().eval()
