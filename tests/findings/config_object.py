"""The batch stands in a configuration."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


@dataclass
class Config:
    batch_size: int = 4
    width: int = 30


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config()

    def forward(self, x):
        flat = x.view(self.config.batch_size, self.config.width)  # error: [pinned-dim] batch
        return flat.softmax(-1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        flat = x.view(x.shape[0], self.config.width)
        return flat.softmax(-1)


def right():
    torch.manual_seed(0)
    return Right().eval()
