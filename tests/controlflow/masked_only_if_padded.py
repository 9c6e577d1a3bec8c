"""The mask is applied only if it hides anything: `if mask.any()`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"hidden": "batch seq 6", "hidden_from_view": "batch seq"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 2, 9])}
exports = True


class MaskedMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(6, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, hidden: Tensor, hidden_from_view: Tensor) -> Tensor:
        hidden = self.mix(hidden).relu()
        if hidden_from_view.any():
            seen = (~hidden_from_view).unsqueeze(-1).float()
            pooled = (hidden * seen).sum(dim=1) / seen.sum(dim=1).clamp(min=1.0)
        else:
            pooled = hidden.amax(dim=1)
        return self.head(pooled)


def model() -> nn.Module:
    torch.manual_seed(0)
    return MaskedMean().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return torch.randn(batch, seq, 6), torch.arange(seq).expand(batch, seq) > seq - 1


def padded(batch: int, seq: int) -> tuple[object, ...]:
    return torch.randn(batch, seq, 6), torch.arange(seq).expand(batch, seq) >= (seq + 1) // 2


sides = (inputs, padded)
