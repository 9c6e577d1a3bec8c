"""A question and a passage joined into one sequence: the joint length is the sum of two dims."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {
    "question": "batch asked",
    "passage": "batch given",
    "question_mask": "batch asked",
    "passage_mask": "batch given",
}
sizes = {"batch": (2, [1, 4]), "asked": (3, [1, 6]), "given": (8, [2, 13])}
exports = True


class JoinedSequences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(22, 6)
        self.segments = nn.Embedding(2, 6)
        self.positions = nn.Embedding(40, 6)

    def forward(
        self, question: Tensor, passage: Tensor, question_mask: Tensor, passage_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        words = torch.cat([question, passage], dim=1)
        segments = torch.cat([torch.zeros_like(question), torch.ones_like(passage)], dim=1)
        mask = torch.cat([question_mask, passage_mask], dim=1).unsqueeze(-1)
        embedded = self.words(words) + self.segments(segments) + self.positions(torch.arange(words.shape[1]))
        return embedded * mask, (embedded * mask).sum(dim=1) / mask.sum(dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return JoinedSequences().eval()


def inputs(batch: int, asked: int, given: int) -> tuple[object, ...]:
    question, passage = torch.randint(0, 22, (batch, asked)), torch.randint(0, 22, (batch, given))
    passage_mask = (torch.arange(given) <= given // 2).float().repeat(batch, 1)
    return question, passage, torch.ones(batch, asked), passage_mask
