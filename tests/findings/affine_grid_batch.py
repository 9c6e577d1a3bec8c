"""A sampling grid for four images."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "batch _ _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.eye(2, 3)[None])

    def forward(self, x):
        theta = self.theta.expand(x.shape[0], -1, -1)
        grid = F.affine_grid(theta, [4, 3, 5, 5], align_corners=False)  # error: [pinned-dim] batch
        return F.grid_sample(x, grid, align_corners=False)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 3, 5, 5),)


class Right(Net):
    def forward(self, x):
        theta = self.theta.expand(x.shape[0], -1, -1)
        grid = F.affine_grid(theta, [x.shape[0], 3, 5, 5], align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)


def right():
    torch.manual_seed(0)
    return Right().eval()
