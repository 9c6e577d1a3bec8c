"""A bias of zeros for seven queries and seven keys."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
        bias = torch.zeros(1, 1, 7, 7)  # error: [pinned-dim] seq
        out = F.scaled_dot_product_attention(heads, heads, heads, attn_mask=bias)
        return out.transpose(1, 2).flatten(2)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
        bias = torch.zeros(1, 1, x.shape[1], x.shape[1])
        out = F.scaled_dot_product_attention(heads, heads, heads, attn_mask=bias)
        return out.transpose(1, 2).flatten(2)


def right():
    torch.manual_seed(0)
    return Right().eval()
