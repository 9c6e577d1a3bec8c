"""nn.TransformerDecoder with a causal mask: torch looks at the mask's values to see that it is causal."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"target": "batch tgt", "memory": "batch src 8"}
sizes = {"batch": (3, [1, 2]), "tgt": (4, [1, 7]), "src": (6, [1, 9])}
exports = True


class CausalDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(18, 8)
        layer = nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=12, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, num_layers=1)
        self.vocabulary = nn.Linear(8, 18)

    def forward(self, target: Tensor, memory: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.vocabulary(self.decoder(self.embedding(target), memory, tgt_mask=mask))


def model() -> nn.Module:
    torch.manual_seed(0)
    return CausalDecoder().eval()


def inputs(batch: int, tgt: int, src: int) -> tuple[object, ...]:
    return torch.randint(0, 18, (batch, tgt)), torch.randn(batch, src, 8)
