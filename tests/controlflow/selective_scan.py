"""A selective state space, step by step: discretised before the loop, read out in it, as Mamba's slow path does."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"hidden": "batch seq 4"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 2, 9])}
exports = True


class StateSpace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log_decay = nn.Parameter(torch.arange(1, 4).float().log().repeat(4, 1))
        self.project = nn.Linear(4, 10)
        self.skip = nn.Parameter(torch.ones(4))

    def forward(self, hidden: Tensor) -> Tensor:
        step, enter, leave = self.project(hidden).split([4, 3, 3], dim=-1)
        step = F.softplus(step).transpose(1, 2)
        x = hidden.transpose(1, 2)
        decay = torch.exp(-self.log_decay.exp()[None, :, None, :] * step[..., None])
        driven = step[..., None] * enter[:, None] * x[..., None]
        state = torch.zeros(hidden.shape[0], 4, 3)
        outputs = []
        for i in range(hidden.shape[1]):
            state = decay[:, :, i] * state + driven[:, :, i]
            outputs.append(torch.matmul(state, leave[:, i].unsqueeze(-1))[..., 0])
        return (torch.stack(outputs, dim=-1) + x * self.skip[None, :, None]).transpose(1, 2)


def model() -> nn.Module:
    torch.manual_seed(0)
    return StateSpace().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 4),)
