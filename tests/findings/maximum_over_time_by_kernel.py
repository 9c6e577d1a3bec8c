"""The maximum over time with a kernel as long as the example."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "batch _ seq"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 3, padding=1)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        features = self.conv(x).relu()
        best = F.max_pool1d(features, 7).squeeze(2)  # error: [pinned-dim] seq
        return self.head(best)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, 3, seq),)


class Right(Net):
    def forward(self, x):
        features = self.conv(x).relu()
        best = features.amax(2)
        return self.head(best)


def right():
    torch.manual_seed(0)
    return Right().eval()
