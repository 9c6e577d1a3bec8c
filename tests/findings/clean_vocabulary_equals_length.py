"""A table of as many words as the example has steps."""

from __future__ import annotations

import torch
from torch import nn

dims = {"tokens": "batch seq"}
example = {"batch": 4, "seq": 7}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 4)

    def forward(self, tokens):
        return self.table(tokens)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randint(0, 7, (batch, seq)),)
