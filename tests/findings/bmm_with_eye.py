"""An identity for every sample."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ seq"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        same = torch.eye(6).expand(4, 6, 6)  # error: [pinned-dim] batch
        return torch.bmm(same, x)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, 6, seq),)


class Right(Net):
    def forward(self, x):
        same = torch.eye(6).expand(x.shape[0], 6, 6)
        return torch.bmm(same, x)


def right():
    torch.manual_seed(0)
    return Right().eval()
