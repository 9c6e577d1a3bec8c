from __future__ import annotations

import pytest
import torch
from torch import nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.dtypes import as_dtype, cast, casting, converted
from anyshape.declaration.targets import resolve_target
from anyshape.errors import DeclarationError


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", torch.float64])
def test_a_floating_type_is_read_from_its_name_or_taken_as_it_is(dtype):
    assert as_dtype(dtype) == (getattr(torch, dtype) if isinstance(dtype, str) else dtype)


@pytest.mark.parametrize("dtype", ["int8", torch.int64, "nn", 16, "float1"])
def test_a_type_that_is_not_floating_is_refused(dtype):
    with pytest.raises(DeclarationError) as caught:
        as_dtype(dtype)
    assert str(caught.value) == f"dtype is {dtype!r}: give a floating type such as torch.float16 or 'bfloat16'"


def test_the_user_s_own_module_is_not_touched():
    module = nn.Linear(2, 3)
    twin = converted(resolve_target(module), torch.float64)
    assert twin.module.weight.dtype == torch.float64
    assert module.weight.dtype == torch.float32


def test_floats_of_a_call_are_cast_and_nothing_else():
    target = resolve_target(lambda x, ids, scale: x)
    call = cast(bind_call(target, (torch.ones(2), torch.ones(2, dtype=torch.int64), 0.5)), torch.float16)
    assert [getattr(value, "dtype", type(value)) for value in call.values.values()] == [
        torch.float16, torch.int64, float,
    ]  # fmt: skip


def test_what_make_inputs_makes_is_cast_in_whichever_form_it_comes():
    target = resolve_target(nn.Linear(2, 3))
    for made in (torch.ones(1, 2), (torch.ones(1, 2),), {"input": torch.ones(1, 2)}, {"args": [torch.ones(1, 2)]}):
        given = casting(lambda made=made: made, target, torch.float64)()
        (value,) = (*given["args"], *given["kwargs"].values())
        assert value.dtype == torch.float64
