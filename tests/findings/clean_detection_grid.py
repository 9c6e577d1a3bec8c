"""A grid of anchors follows the map."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ height width"}
example = {"batch": 4, "height": 16, "width": 24}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 4, stride=4)

    def forward(self, x):
        boxes = self.conv(x).sigmoid()
        _, _, h, w = boxes.shape
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centres = (boxes[:, :2] + torch.stack([columns, rows])) * 4
        return torch.cat([centres, boxes[:, 2:] * 8], dim=1).flatten(2)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, height, width):
    return (torch.randn(batch, 3, height, width),)
