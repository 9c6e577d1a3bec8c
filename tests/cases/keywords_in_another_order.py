"""Keyword arguments given in another order than forward's: names must follow the parameter, not the place."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"query": "batch asked 4", "key": "batch stored 4", "value": "batch stored 5"}
sizes = {"batch": (2, [1, 3]), "asked": (4, [1, 6]), "stored": (7, [2, 9])}
exports = True


class KeywordAttention(nn.Module):
    def forward(self, query: Tensor, key: Tensor, value: Tensor, *, sharpness: Tensor) -> Tensor:
        return (query @ key.mT * sharpness).softmax(dim=-1) @ value


def model() -> nn.Module:
    torch.manual_seed(0)
    return KeywordAttention().eval()


def inputs(batch: int, asked: int, stored: int) -> dict[str, object]:
    value, key = torch.randn(batch, stored, 5), torch.randn(batch, stored, 4)
    keywords = {"sharpness": torch.tensor(0.7), "value": value, "key": key}
    return {"args": (torch.randn(batch, asked, 4),), "kwargs": keywords}
