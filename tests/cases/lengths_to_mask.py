"""A mask made from lengths: positions of one axis compared with the values of another input."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"frames": "batch seq 3", "lengths": "batch"}
sizes = {"batch": (3, [1, 5]), "seq": (6, [1, 2, 10])}
exports = True


class MaskedPooling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(3, 1)

    def forward(self, frames: Tensor, lengths: Tensor) -> Tensor:
        inside = torch.arange(frames.size(1), device=lengths.device) < lengths[:, None]
        scores = self.score(frames).squeeze(-1).masked_fill(~inside, float("-inf"))
        return (scores.softmax(dim=1).unsqueeze(-1) * frames).sum(dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return MaskedPooling().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return torch.randn(batch, seq, 3), torch.randint(1, seq + 1, (batch,))
