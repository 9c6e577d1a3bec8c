"""Lengths go to `pack_padded_sequence` as a list, longest first: reading them one by one pins the batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import rnn

dims = {"frames": "seq batch 3", "lengths": "batch"}
sizes = {"seq": (6, [1, 2, 9]), "batch": (3, [1, 5])}
exports = True


class LastOfEach(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4)

    def forward(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        packed = rnn.pack_padded_sequence(frames, lengths.tolist())
        encoded, (last, _) = self.lstm(packed)
        padded, _ = rnn.pad_packed_sequence(encoded, total_length=frames.size(0))
        return padded.amax(dim=0), last.squeeze(0)


def model() -> nn.Module:
    torch.manual_seed(0)
    return LastOfEach().eval()


def inputs(seq: int, batch: int) -> tuple[object, ...]:
    lengths = torch.arange(batch).flip(0) % seq + 1
    return torch.randn(seq, batch, 3), lengths.sort(descending=True).values
