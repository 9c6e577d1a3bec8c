"""Two lines write the batch."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, x):
        x = torch.cat([self.token.expand(4, 1, 8), x], dim=1)  # error: [pinned-dim] batch
        heads = x.view(4, -1, 2, 4)  # warning: [mixed-batch] batch
        return heads.transpose(1, 2)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        x = torch.cat([self.token.expand(x.shape[0], 1, 8), x], dim=1)
        heads = x.view(x.shape[0], -1, 2, 4)
        return heads.transpose(1, 2)


def right():
    torch.manual_seed(0)
    return Right().eval()
