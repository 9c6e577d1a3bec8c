"""Words are embedded while they are packed, and the result is as long as the longest row: sizes that lengths decide."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

dims = {"words": "batch seq", "lengths": "batch"}
sizes = {"batch": (4, [1, 2, 7]), "seq": (6, [1, 3, 11])}
exports = True


class PackedWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.gru = nn.GRU(4, 3, num_layers=2, bidirectional=True)

    def forward(self, words: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        embedded = PackedSequence(
            self.embedding(packed.data), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices
        )
        encoded, last = self.gru(embedded)
        padded, counted = pad_packed_sequence(encoded, batch_first=True, padding_value=-1.0)
        return padded, counted, torch.cat([last[-2], last[-1]], dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return PackedWords().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    lengths = torch.arange(batch) * 3 % seq + 1
    return torch.randint(0, 10, (batch, seq)), lengths
