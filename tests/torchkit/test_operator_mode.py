"""A mode leaves nothing behind."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.map import map as each

from anyshape.torchkit.operator_mode import OperatorMode


class _Passing(OperatorMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        return func(*args, **(kwargs or {}))


def _row_by_row(x: Tensor, y: Tensor) -> dict[str, Tensor]:
    found: dict[str, Tensor] = each(lambda row, y: {"product": row * y}, x, y)
    return found


def test_what_torch_compiles_runs_after_a_mode_as_before() -> None:
    call = torch.arange(12.0).reshape(3, 4), torch.arange(4.0)
    with torch.no_grad():
        before = _row_by_row(*call)["product"]
        with _Passing():
            inside = _row_by_row(*call)["product"]
        after = _row_by_row(*call)["product"]
    assert torch.equal(before, call[0] * call[1])
    assert torch.equal(before, inside)
    assert torch.equal(before, after)


def test_a_mode_may_be_entered_twice() -> None:
    mode = _Passing()
    with mode, mode:
        assert torch.equal(torch.ones(2) + 1, torch.full((2,), 2.0))
    assert torch.equal(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)), torch.full((2,), 2.0))
