"""Token, mask and segment inputs that share batch and length: one dim, declared three times."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"input_ids": "batch seq", "attention_mask": "batch seq", "token_type_ids": "batch seq"}
sizes = {"batch": (3, [1, 4]), "seq": (5, [1, 2, 11])}
exports = True


class SmallBert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.types, self.places = nn.Embedding(32, 8), nn.Embedding(2, 8), nn.Embedding(20, 8)
        self.norm = nn.LayerNorm(8)
        self.project = nn.Linear(8, 24)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        batch, seq = input_ids.shape
        places = torch.arange(seq).unsqueeze(0).expand(batch, seq)
        hidden = self.norm(self.words(input_ids) + self.types(token_type_ids) + self.places(places))
        query, key, value = self.project(hidden).view(batch, seq, 2, 12).transpose(1, 2).chunk(3, dim=-1)
        hide = (1 - attention_mask[:, None, None, :].float()) * -1e4
        weights = (query @ key.transpose(2, 3) / 2 + hide).softmax(dim=-1)
        hidden = hidden + (weights @ value).transpose(1, 2).reshape(batch, seq, 8)
        return hidden, hidden[:, 0].tanh()


def model() -> nn.Module:
    torch.manual_seed(0)
    return SmallBert().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    ids = torch.randint(0, 32, (batch, seq))
    mask = (torch.arange(seq) < (seq + 1) // 2 + torch.arange(batch)[:, None]).long()
    return ids, mask, torch.randint(0, 2, (batch, seq))
