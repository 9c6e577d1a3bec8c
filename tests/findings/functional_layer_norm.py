"""`F.layer_norm` is given the shape as numbers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        return F.layer_norm(x, (7, 8)) * 2  # error: [pinned-dim] seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        return F.layer_norm(x, x.shape[1:]) * 2


def right():
    torch.manual_seed(0)
    return Right().eval()
