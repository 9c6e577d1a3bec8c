"""An LSTM over packed sequences: each row of the batch ends where `lengths` says."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

dims = {"words": "batch seq 3", "lengths": "batch"}
sizes = {"batch": (4, [1, 2, 7]), "seq": (6, [2, 11])}
exports = True


class PackedLstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 5, batch_first=True)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        encoded, _ = self.lstm(packed)
        padded, _ = pad_packed_sequence(encoded, batch_first=True, total_length=words.shape[1])
        return padded


def model() -> nn.Module:
    torch.manual_seed(0)
    return PackedLstm().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    lengths = torch.arange(batch) * 2 % seq + 1
    return torch.randn(batch, seq, 3), lengths
