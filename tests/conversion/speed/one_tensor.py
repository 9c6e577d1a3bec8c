"""Inputs of functions of one tensor, whose batch and length vary."""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = ["batch 4 length"]
SIZES = [{"batch": 1, "length": 1}, {"batch": 3, "length": 7}, {"batch": 2, "length": 12}]


def make(batch: int, length: int) -> tuple[Tensor, ...]:
    return (torch.randn(batch, 4, length),)
