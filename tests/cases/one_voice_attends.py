"""nn.MultiheadAttention without a batch, with keys of another width, a key of its own and one of zeros."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"voice": "beats 8", "score": "bars 6", "hidden": "bars"}
sizes = {"beats": (5, [1, 2, 9]), "bars": (4, [1, 7])}
exports = True


class VoiceAttends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(8, 2, kdim=6, vdim=6, add_bias_kv=True, add_zero_attn=True)

    def forward(self, voice: Tensor, score: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        mixed, weights = self.attend(voice, score, score, key_padding_mask=hidden, average_attn_weights=False)
        alone, _ = self.attend(voice, score, score, need_weights=False)
        return mixed + alone, weights


def model() -> nn.Module:
    torch.manual_seed(0)
    return VoiceAttends().eval()


def inputs(beats: int, bars: int) -> tuple[object, ...]:
    return torch.randn(beats, 8), torch.randn(bars, 6), torch.arange(bars) % 3 == 1
