"""Two branches on two dims in one forward, one after the other: four ways through."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"audio": "batch frames 4", "text": "batch words 4"}
sizes = {"batch": (2, [1]), "frames": (12, [1, 10, 11]), "words": (4, [1, 5, 6])}
exports = True


class Fusion(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.audio = nn.Linear(4, 6)
        self.text = nn.Linear(4, 6)

    def forward(self, audio: Tensor, text: Tensor) -> Tensor:
        heard, read = self.audio(audio), self.text(text)
        if heard.shape[1] > 10:
            heard = heard[:, ::2]
        if read.shape[1] > 5:
            read = read - read.mean(dim=1, keepdim=True)
        scores = torch.einsum("bfd,bwd->bfw", heard, read)
        return scores.softmax(dim=-1).sum(dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Fusion().eval()


def inputs(batch: int, frames: int, words: int) -> tuple[object, ...]:
    return torch.randn(batch, frames, 4), torch.randn(batch, words, 4)
