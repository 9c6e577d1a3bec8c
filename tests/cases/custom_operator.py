"""An operator registered with torch.library, whose Python implementation is all there is to write."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"values": "batch n 3", "shift": "1 n 1"}
sizes = {"batch": (3, [1, 2]), "n": (5, [1, 10])}
exports = True


@torch.library.custom_op("anyshape_cases::softplus_shifted", mutates_args=())
def softplus_shifted(values: Tensor, shift: Tensor) -> Tensor:
    return F.softplus(values - shift)


@softplus_shifted.register_fake
def _(values: Tensor, shift: Tensor) -> Tensor:
    return torch.empty_like(values)


class CustomOperator(nn.Module):
    def forward(self, values: Tensor, shift: Tensor) -> Tensor:
        return softplus_shifted(values, shift).mean(dim=2)


def model() -> nn.Module:
    torch.manual_seed(0)
    return CustomOperator().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return torch.randn(batch, n, 3), torch.randn(1, n, 1)
