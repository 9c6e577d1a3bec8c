"""Angles over eight features, with a length of eight."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 8}


class Net(nn.Module):
    def forward(self, x):
        frequencies = 1.0 / 100 ** (torch.arange(0, 8, 2) / 8)
        angles = torch.arange(x.shape[1])[:, None] * frequencies
        a, b = x[..., :4], x[..., 4:]
        return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
