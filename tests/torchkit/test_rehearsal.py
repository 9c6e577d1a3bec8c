"""What may end the process is run in a copy of it first."""

from __future__ import annotations

import ctypes
import time

import pytest
import torch

from anyshape.sizes import budgets
from anyshape.torchkit.defined_calls import DefinedCalls, UndefinedCallError
from anyshape.torchkit.rehearsal import may_end_the_process, signature_of_call, survives


@torch.library.custom_op("rehearsed::paired", mutates_args=())
def paired(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] % 2:
        ctypes.string_at(0)  # reads where nothing is, as a kernel that trusts its sizes
    if x.shape[0] == 0:
        raise ValueError("no pairs")
    return x[::2] + x[1::2]


def test_a_copy_comes_back_with_a_result_or_an_exception_and_not_from_its_death() -> None:
    assert survives(paired, (torch.ones(4),), {})
    assert survives(paired, (torch.ones(0),), {})
    assert not survives(paired, (torch.ones(3),), {})


def test_a_broken_heap_is_a_death_although_the_call_returns() -> None:
    gradient, x = torch.randn(1, 2, 2, 2), torch.randn(1, 2, 0, 4)
    wide = torch.randn(7, 20, 20, 20)
    backward = torch.ops.aten._adaptive_avg_pool2d_backward.default
    assert survives(backward, (gradient, torch.randn(1, 2, 4, 4)), {})
    assert not survives(backward, (wide, x.new_zeros(1, 2, 4, 4)), {})


def test_a_copy_that_waits_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "SECONDS_OF_A_REHEARSAL", 0.1)
    assert not survives(time.sleep, (60,), {})


def test_a_copy_works_beside_threads_that_it_does_not_have() -> None:
    x = torch.randn(700, 700)
    before = x @ x  # fills the pool of threads
    assert survives(torch.matmul, (x, before), {})


def test_own_operators_and_derivatives_called_by_hand_are_rehearsed() -> None:
    assert may_end_the_process(torch.ops.rehearsed.paired.default)
    assert may_end_the_process(torch.ops.aten.avg_pool2d_backward.default)
    assert not may_end_the_process(torch.ops.aten.relu.default)


def test_derivatives_that_torch_takes_are_not_rehearsed() -> None:
    asked = []

    class Watched(DefinedCalls):
        def _rehearse(self, func, args, kwargs):
            asked.append(func.name())

    x = torch.randn(1, 2, 4, 4, requires_grad=True)
    with Watched():
        torch.autograd.grad(torch.nn.functional.avg_pool2d(x, 2).sum(), x)
        assert asked == []
        torch.ops.aten.avg_pool2d_backward(x[..., :2, :2], x, [2, 2], [2, 2], [0, 0], False, True, None)
    assert asked == ["aten::avg_pool2d_backward"]


def test_a_probe_goes_on_where_an_operator_would_end_the_process() -> None:
    with DefinedCalls():
        assert paired(torch.ones(4)).tolist() == [2, 2]
        with pytest.raises(UndefinedCallError) as caught:
            paired(torch.ones(3))
        with pytest.raises(ValueError, match="no pairs"):
            paired(torch.ones(0))
    assert str(caught.value) == "rehearsed::paired ends the process at such sizes"


def test_calls_alike_but_for_values_are_rehearsed_once() -> None:
    first, second = (signature_of_call(paired._opoverload, (torch.randn(4),), {"by": [1]}) for _ in range(2))
    assert first == second
    assert first != signature_of_call(paired._opoverload, (torch.randn(6),), {"by": [1]})
