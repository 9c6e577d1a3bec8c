"""Two expressions of one line write the batch: neither helps alone."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _", "mask": "batch"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x, mask):
        return x.view(4, 30) * mask.view(4, 1)  # error: [pinned-dim] batch # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5), torch.rand(batch))


class Right(Net):
    def forward(self, x, mask):
        return x.view(-1, 30) * mask.view(-1, 1)


def right():
    torch.manual_seed(0)
    return Right().eval()
