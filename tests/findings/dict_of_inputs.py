"""The input is a dict."""

from __future__ import annotations

import torch
from torch import nn

dims = {"batch.values": "batch seq _", "batch.mask": "batch seq"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 5)

    def forward(self, batch):
        hidden = batch["values"] * batch["mask"][..., None]
        return self.linear(hidden.view(28, 8)).view_as(hidden[..., :5])  # error: [pinned-dim] batch, seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return ({"values": torch.randn(batch, seq, 8), "mask": torch.ones(batch, seq)},)


class Right(Net):
    def forward(self, batch):
        hidden = batch["values"] * batch["mask"][..., None]
        return self.linear(hidden.view(-1, 8)).view_as(hidden[..., :5])


def right():
    torch.manual_seed(0)
    return Right().eval()
