"""A translator: the source and the target have lengths of their own and meet in cross attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"source": "batch src", "source_mask": "batch src", "target": "batch tgt"}
sizes = {"batch": (2, [1, 4]), "src": (7, [1, 12]), "tgt": (5, [1, 3, 9])}
exports = True


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.memory, self.out = nn.Linear(8, 8), nn.Linear(8, 16), nn.Linear(8, 8)

    def forward(self, hidden: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        query, *pair = self.query(hidden), *self.memory(memory).chunk(2, dim=-1)
        heads = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in (query, *pair))
        mixed = F.scaled_dot_product_attention(*heads, attn_mask=mask)
        return hidden + self.out(mixed.transpose(1, 2).flatten(2))


class EncoderDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(26, 8), nn.Parameter(torch.randn(16, 8))
        self.encode, self.listen, self.cross = Attention(), Attention(), Attention()
        self.norm = nn.LayerNorm(8)

    def embed(self, ids: Tensor) -> Tensor:
        return self.words(ids) + self.places[: ids.shape[1]]

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        seen = source_mask[:, None, None, :]
        memory = self.embed(source)
        memory = self.norm(self.encode(memory, memory, seen))
        earlier = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril()
        hidden = self.embed(target)
        hidden = self.cross(self.listen(hidden, hidden, earlier), memory, seen)
        return self.norm(hidden) @ self.words.weight.T, memory


def model() -> nn.Module:
    torch.manual_seed(0)
    return EncoderDecoder().eval()


def inputs(batch: int, src: int, tgt: int) -> tuple[object, ...]:
    mask = torch.arange(src) <= torch.arange(batch)[:, None] + src // 2
    return torch.randint(0, 26, (batch, src)), mask, torch.randint(0, 26, (batch, tgt))
