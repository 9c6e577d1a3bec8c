"""Sizes divided by `torch.div` give the number that torch gives, also below zero."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anyshape.conversion.operators.arithmetic import DIVISIONS
from anyshape.conversion.operators.repair import applied


class Quotients(nn.Module):
    """Kinds of what `torch.div` returns while a trace runs."""

    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[0]
        self.down = type(torch.div(size, 2, rounding_mode="floor"))
        self.towards_zero = type(torch.div(size, 2, rounding_mode="trunc"))
        self.perhaps_negative = type(torch.div(size - 6, 4, rounding_mode="trunc"))
        self.fraction = type(torch.div(size, 2))
        return x * torch.div(size - 6, 4, rounding_mode="floor")


def test_a_size_stays_a_size_where_the_rounding_is_surely_the_same() -> None:
    model, varying = Quotients(), {"x": {0: torch.export.Dim.DYNAMIC}}
    with applied([DIVISIONS]) as acted:
        program = torch.export.export(model, (torch.ones(8),), dynamic_shapes=varying)
    assert acted.sentences == ["torch.div of a size: stays a size"]
    assert (model.down, model.towards_zero) == (torch.SymInt, torch.SymInt)
    assert issubclass(model.perhaps_negative, Tensor)
    assert issubclass(model.fraction, Tensor)
    assert [program.module()(torch.ones(size))[0].item() for size in (3, 5, 9, 14)] == [-1, -1, 0, 2]
