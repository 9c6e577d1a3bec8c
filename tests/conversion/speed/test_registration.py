"""Shapes are registered without a search for the caller, or with it."""

from __future__ import annotations

import inspect

import pytest
import torch

from anyshape.conversion.speed import switch
from anyshape.conversion.speed.registration import register_fake

LIBRARY = torch.library.Library("anyshape_registered", "FRAGMENT")


@pytest.mark.parametrize(("value", "searches"), [("1", False), ("0", True)])
def test_an_operator_has_its_shapes(value: str, searches: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    original = inspect.getmodule
    monkeypatch.setattr(inspect, "getmodule", lambda *args: asked.append(args) or original(*args))
    monkeypatch.setenv(switch.VARIABLE, value)
    LIBRARY.define(f"rows_{value}(Tensor x) -> Tensor")
    register_fake(f"anyshape_registered::rows_{value}", lambda x: x.new_empty(x.shape[0]), LIBRARY)
    assert bool(asked) is searches
    operator = getattr(torch.ops.anyshape_registered, f"rows_{value}")
    assert operator(torch.empty(3, 4, device="meta")).shape == (3,)
