"""Coordinates of the example's pixels: two counts in one line."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "_ _ height width"}
example = {"height": 6, "width": 9}
others = [{"height": 4, "width": 6}, {"height": 10, "width": 12}, {"height": 8, "width": 20}]


class Net(nn.Module):
    def forward(self, x):
        rows, columns = torch.arange(6), torch.arange(9)  # error: [pinned-dim] height # error: [pinned-dim] width
        y, z = torch.meshgrid(rows, columns, indexing="ij")
        return torch.cat([x, torch.stack([y, z])[None].float()], dim=1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(height, width):
    return (torch.randn(1, 3, height, width),)


class Right(Net):
    def forward(self, x):
        rows, columns = torch.arange(x.shape[2]), torch.arange(x.shape[3])
        y, z = torch.meshgrid(rows, columns, indexing="ij")
        return torch.cat([x, torch.stack([y, z])[None].float()], dim=1)


def right():
    torch.manual_seed(0)
    return Right().eval()
