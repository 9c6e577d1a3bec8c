"""nn.MultiheadAttention across two lengths with a key padding mask, time on axis 0."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"speech": "frames batch 6", "text": "words batch 6", "padding": "batch words"}
sizes = {"batch": (2, [1, 4]), "frames": (7, [1, 10]), "words": (5, [1, 3])}
exports = True


class SpeechToText(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, num_heads=2)

    def forward(self, speech: Tensor, text: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        mixed, weights = self.attention(speech, text, text, key_padding_mask=padding)
        return speech + mixed, weights


def model() -> nn.Module:
    torch.manual_seed(0)
    return SpeechToText().eval()


def inputs(batch: int, frames: int, words: int) -> tuple[object, ...]:
    padding = torch.arange(words) > torch.arange(batch)[:, None] + words // 2
    return torch.randn(frames, batch, 6), torch.randn(words, batch, 6), padding
