"""A list with one tensor for each step: as one tensor, for whoever stacks, joins, indexes or turns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.conversion.control_flow.collected import ANSWERS, Collected, LoopError, StackedSteps, joined, stacked
from tests.conversion.control_flow.keeping import traced


def _filled() -> tuple[Collected, list[torch.Tensor]]:
    """The list, and the tensors that are in it for the user."""
    torch.manual_seed(0)
    first, steps = torch.randn(2, 3), torch.randn(4, 2, 3)
    return Collected([first, StackedSteps(steps)]), [first, *steps]


def test_it_is_as_long_and_as_true_as_what_it_stands_for() -> None:
    filled, tensors = _filled()
    assert filled.length == len(tensors)
    assert bool(filled)
    assert not Collected([])


def test_it_is_stacked_and_joined_as_its_tensors_are() -> None:
    filled, tensors = _filled()
    assert torch.equal(stacked(filled.parts), torch.stack(tensors))
    for axis in (0, 1, -1):
        assert torch.equal(joined(filled.parts, axis), torch.cat(tensors, axis))


@pytest.mark.parametrize("name", ["stack", "cat", "hstack", "vstack", "column_stack"])
def test_torchs_functions_take_it(name: str) -> None:
    filled, tensors = _filled()
    assert torch.equal(ANSWERS[torch, name](filled), getattr(torch, name)(tensors))
    assert ANSWERS[torch, name](tensors) is NotImplemented


def test_it_is_indexed_and_turned() -> None:
    filled, tensors = _filled()
    assert filled[0] is tensors[0]
    assert torch.equal(filled[-1], tensors[-1])
    assert torch.equal(stacked(filled[1:3].parts), torch.stack(tensors[1:3]))
    assert torch.equal(stacked(filled[::-1].parts), torch.stack(tensors[::-1]))
    filled += tensors[:1]
    assert torch.equal(stacked(filled.parts), torch.stack([*tensors, tensors[0]]))


def test_what_it_cannot_do_is_refused() -> None:
    filled, _ = _filled()
    with pytest.raises(LoopError, match="read one by one"):
        list(filled)
    with pytest.raises(LoopError, match="taken out"):
        filled.pop()
    with pytest.raises(LoopError, match="`relu` is given a list"):
        torch.relu(filled.parts[1])


class Model(nn.Module):
    """Its loops are in functions of this file."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def read_outside(m, x):
    outs = [frame * 2 for frame in x.unbind(1)]
    return {id(one): one for one in outs}


def test_a_collected_list_is_not_read_one_by_one() -> None:
    with pytest.raises(LoopError, match="is read one by one outside of a loop"):
        traced(Model(read_outside), torch.randn(2, 5, 4))
