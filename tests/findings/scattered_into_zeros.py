"""Labels are scattered into a table of four rows."""

from __future__ import annotations

import torch
from torch import nn

dims = {"labels": "batch"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 10)

    def forward(self, labels):
        hot = torch.zeros(4, 10).scatter(1, labels[:, None], 1.0)  # error: [pinned-dim] batch
        return hot + self.table(labels)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randint(0, 10, (batch,)),)


class Right(Net):
    def forward(self, labels):
        hot = torch.zeros(labels.shape[0], 10).scatter(1, labels[:, None], 1.0)
        return hot + self.table(labels)


def right():
    torch.manual_seed(0)
    return Right().eval()
