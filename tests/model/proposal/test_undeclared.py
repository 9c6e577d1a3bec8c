"""Lightning's `example_input_array`, in every form that Lightning takes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from anyshape.declaration.calls import example_of

X, Y = torch.zeros(2, 3), torch.ones(2, 3)


@pytest.mark.parametrize(
    ("given", "call"),
    [
        (X, ((X,), {})),
        ((X, Y), ((X, Y), {})),
        ([X, Y], ((X, Y), {})),
        ({"x": X, "y": Y}, ((), {"x": X, "y": Y})),
        (None, None),
    ],
    ids=["tensor", "tuple", "list", "dict", "none"],
)
def test_the_example_that_a_module_carries_is_a_call(given: Any, call: Any):
    module = nn.Linear(3, 3)
    module.example_input_array = given
    assert example_of(module) == call


def test_a_module_without_one_has_none():
    assert example_of(nn.Linear(3, 3)) is None
