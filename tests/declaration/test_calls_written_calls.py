"""Calls that are written as one value."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import anyshape
from anyshape.declaration.calls import read_call

_X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("given", "args", "kwargs"),
    [
        ((1, 2), (1, 2), None),
        ({"x": 1}, {"x": 1}, None),
        ({}, {}, None),
        ({"args": (1, 2)}, (1, 2), None),
        ({"args": [1, 2]}, (1, 2), None),
        ({"args": 1}, 1, None),
        ({"kwargs": {"x": 1}}, (), {"x": 1}),
        ({"args": (1,), "kwargs": {"y": 2}}, (1,), {"y": 2}),
        ({"args": (1,), "x": 2}, {"args": (1,), "x": 2}, None),
    ],
)
def test_a_call_in_one_value(given: Any, args: Any, kwargs: Any) -> None:
    assert read_call(given) == (args, kwargs)


def test_one_tensor_as_arguments_is_not_taken_apart() -> None:
    result = anyshape.export(
        nn.Linear(3, 2), make_inputs=lambda batch=2: {"args": torch.randn(batch, 3)}, dims={"input": ["batch", 3]}
    )
    assert result.verdict == "checked"
    assert result(_X)[0].shape == (2, 2)
