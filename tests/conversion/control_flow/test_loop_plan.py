"""What a loop carries, laid out as tensors: one that grows makes a Loop, two that share their memory are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.conversion.control_flow.collected import LoopError
from tests.conversion.control_flow.keeping import kept, traced
from tests.conversion.control_flow.lowering import all_operators


class Model(nn.Module):
    """Its loops are in functions of this file."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def growing(m, x):
    out = x[:, :1]
    for t in range(1, x.size(1)):
        out = torch.cat([out, out[:, -1:].sin() + x[:, t : t + 1]], 1)
    return out + x


def test_a_tensor_that_grows_becomes_a_loop() -> None:
    made, said = kept(Model(growing), torch.randn(2, 5, 4))
    assert all_operators(made.graph)["Loop"] == 1
    assert " kept as Loop: " in said[0]


def two_names(m, x):
    out = torch.zeros_like(x)
    view = out[:, 0]
    for t in range(x.shape[1]):
        out[:, t] = x[:, t]
        view += 1
    return out


def test_views_of_one_memory_are_refused() -> None:
    with pytest.raises(LoopError, match="a loop writes to a tensor that goes by two names, `out` and `view`"):
        traced(Model(two_names), torch.randn(2, 5, 4))
