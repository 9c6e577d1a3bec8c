"""nn.TransformerEncoder with a causal mask and a padding mask as inputs: it compares the first with a causal one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"notes": "batch seq 8", "later": "seq seq", "padding": "batch seq"}
sizes = {"batch": (3, [1, 2]), "seq": (5, [1, 2, 9])}
exports = True


class PrefixEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=12, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1, norm=nn.LayerNorm(8), enable_nested_tensor=False)

    def forward(self, notes: Tensor, later: Tensor, padding: Tensor) -> Tensor:
        return self.encoder(notes, mask=later, src_key_padding_mask=padding).masked_fill(padding.unsqueeze(-1), 0.0)


def model() -> nn.Module:
    torch.manual_seed(0)
    return PrefixEncoder().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    padding = torch.arange(seq) >= (seq - torch.arange(batch) % ((seq + 1) // 2)).unsqueeze(1)
    return torch.randn(batch, seq, 8), torch.ones(seq, seq, dtype=torch.bool).triu(1), padding
