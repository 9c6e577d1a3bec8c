"""A part of a forward that switches gradients on is traced without them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.conversion.operators.repair import applied
from anyshape.conversion.operators.traced_code import GRADIENTS


class Enabling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            y = x * self.scale
        with torch.no_grad(), torch.set_grad_enabled(True):
            return y.cumsum(1) - self.scale


def test_exports_right_at_sizes_never_traced() -> None:
    model = nn.Sequential(nn.Sequential(Enabling(), nn.Tanh()), Enabling()).eval()
    result = anyshape.export(model, torch.randn(3, 5), dims={"input": "batch n"}, quick=True)
    assert result.attempts[-1].strategy == "torch.export with repairs"
    assert result.repairs == ("torch.enable_grad: traced without gradients",)
    assert torch.is_grad_enabled()
    for shape in ((1, 1), (3, 5), (7, 11)):
        x = torch.randn(*shape)
        torch.testing.assert_close(result(x)[0], model(x).detach())


def test_switching_off_is_not_noticed_and_what_was_on_is_on_again() -> None:
    with pytest.raises(KeyError), applied([GRADIENTS]) as acted:
        with torch.no_grad():
            assert not torch.is_grad_enabled()
        assert acted.sentences == []
        with torch.enable_grad():
            assert not torch.is_grad_enabled()
        assert acted.beyond_the_plain_way
        raise KeyError
    assert torch.is_grad_enabled()
    with torch.no_grad(), torch.enable_grad():
        assert torch.is_grad_enabled()


def test_a_forward_that_takes_a_gradient_is_not_written_wrong() -> None:
    class Slope(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                return torch.autograd.grad((x**3).sum(), x)[0]

    try:
        result = anyshape.export(Slope().eval(), torch.randn(3, 5), dims={"x": "batch n"}, quick=True)
    except anyshape.ExportError:
        return
    x = torch.randn(2, 7)
    torch.testing.assert_close(result(x)[0], 3 * x**2)
