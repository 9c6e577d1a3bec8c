"""Texts and images scored against each other: four dims, a shared batch, a square result."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"ids": "batch seq", "mask": "batch seq", "image": "batch 3 height width"}
sizes = {"batch": (2, [1, 5]), "seq": (6, [1, 11]), "height": (20, [9, 31]), "width": (24, [8, 37])}
exports = True


class TextTower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(40, 8), nn.Embedding(32, 8)
        self.project = nn.Linear(8, 24)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        hidden = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        query, key, value = self.project(hidden).chunk(3, dim=-1)
        hidden = hidden + F.scaled_dot_product_attention(query, key, value, attn_mask=mask.unsqueeze(1))
        return hidden.masked_fill(~mask.unsqueeze(-1), 0.0).sum(dim=1) / mask.sum(dim=1, keepdim=True)


class TwoTower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.text = TextTower()
        self.image = nn.Sequential(
            nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.GroupNorm(2, 6), nn.SiLU(), nn.Conv2d(6, 8, 3, stride=2)
        )

    def forward(self, ids: Tensor, mask: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        texts = F.normalize(self.text(ids, mask), dim=-1)
        patches = self.image(image)
        images = F.normalize(patches.mean(dim=(2, 3)), dim=-1)
        return 10 * texts @ images.T, torch.einsum("bd,bdhw->bhw", texts, patches)


def model() -> nn.Module:
    torch.manual_seed(0)
    return TwoTower().eval()


def inputs(batch: int, seq: int, height: int, width: int) -> tuple[object, ...]:
    mask = torch.arange(seq) <= torch.arange(batch)[:, None] + seq // 2
    return torch.randint(0, 40, (batch, seq)), mask, torch.randn(batch, 3, height, width)
