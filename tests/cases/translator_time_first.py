"""nn.Transformer with time before batch, a causal mask of its own making and lengths on both sides."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"source": "src batch 8", "target": "tgt batch 8", "padding": "batch src"}
sizes = {"batch": (2, [1, 4]), "src": (6, [1, 9]), "tgt": (5, [1, 3, 8])}
exports = True


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=12)
        encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.body = nn.Transformer(8, 2, num_decoder_layers=1, dim_feedforward=12, custom_encoder=encoder)

    def forward(self, source: Tensor, target: Tensor, padding: Tensor) -> Tensor:
        later = self.body.generate_square_subsequent_mask(target.shape[0])
        return self.body(source, target, tgt_mask=later, src_key_padding_mask=padding, memory_key_padding_mask=padding)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Translator().eval()


def inputs(batch: int, src: int, tgt: int) -> tuple[object, ...]:
    lengths = src - torch.arange(batch) % ((src + 1) // 2)
    padding = torch.zeros(batch, src).masked_fill(torch.arange(src) >= lengths.unsqueeze(1), float("-inf"))
    return torch.randn(src, batch, 8), torch.randn(tgt, batch, 8), padding
