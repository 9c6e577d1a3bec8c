"""The input is a list of two lengths."""

from __future__ import annotations

import torch
from torch import nn

dims = {"parts.0": "_ first _", "parts.1": "_ second _"}
example = {"first": 5, "second": 7}
others = [{"first": 3, "second": 7}, {"first": 5, "second": 8}, {"first": 2, "second": 2}]


class Net(nn.Module):
    def forward(self, parts):
        joined = torch.cat(parts, dim=1)
        steps = torch.arange(12)  # error: [pinned-dim] first, second
        return joined * steps[:, None]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(first, second):
    return ([torch.randn(2, first, 3), torch.randn(2, second, 3)],)


class Right(Net):
    def forward(self, parts):
        joined = torch.cat(parts, dim=1)
        steps = torch.arange(joined.shape[1])
        return joined * steps[:, None]


def right():
    torch.manual_seed(0)
    return Right().eval()
