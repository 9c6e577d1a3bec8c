"""Nothing is padded, said by a mask of fixed size."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        padded = torch.zeros(4, 7, dtype=torch.bool)  # error: [pinned-dim] batch, seq
        return self.attention(x, x, x, key_padding_mask=padded)[0]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        padded = torch.zeros(x.shape[0], x.shape[1], dtype=torch.bool)
        return self.attention(x, x, x, key_padding_mask=padded)[0]


def right():
    torch.manual_seed(0)
    return Right().eval()
