"""What is padded by nine meets a table of sixteen."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 2, "seq": 3}, {"batch": 1, "seq": 6}]
safe = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(16, 8))

    def forward(self, x):
        longer = F.pad(x, (0, 0, 0, 9))
        return longer + self.table  # error: [pinned-dim] seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        longer = F.pad(x, (0, 0, 0, 9))
        return longer + self.table[: longer.shape[1]]


def right():
    torch.manual_seed(0)
    return Right().eval()
