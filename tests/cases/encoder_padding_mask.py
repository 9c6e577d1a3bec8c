"""nn.TransformerEncoder with a padding mask: its attention reshapes with the sizes of the trace."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"tokens": "batch seq", "padding": "batch seq"}
sizes = {"batch": (3, [1, 5]), "seq": (7, [1, 2, 10])}
exports = True


class PaddedEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(24, 12)
        layer = nn.TransformerEncoderLayer(12, nhead=3, dim_feedforward=20, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)

    def forward(self, tokens: Tensor, padding: Tensor) -> Tensor:
        encoded = self.encoder(self.embedding(tokens), src_key_padding_mask=padding)
        return encoded.masked_fill(padding.unsqueeze(-1), 0.0)


def model() -> nn.Module:
    torch.manual_seed(0)
    return PaddedEncoder().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    lengths = seq - torch.arange(batch) % ((seq + 1) // 2)
    padding = torch.arange(seq) >= lengths.unsqueeze(1)
    return torch.randint(0, 24, (batch, seq)), padding
