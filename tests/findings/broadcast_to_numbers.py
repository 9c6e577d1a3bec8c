"""`broadcast_to` with a tuple."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(8))

    def forward(self, x):
        return torch.cat([x, torch.broadcast_to(self.scale, (4, 7, 8))], -1)  # error: [pinned-dim] batch, seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        return torch.cat([x, torch.broadcast_to(self.scale, x.shape)], -1)


def right():
    torch.manual_seed(0)
    return Right().eval()
