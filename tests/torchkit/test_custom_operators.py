"""Operators of the user's are found in every form, and their calls are answered from wherever they come."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from anyshape.torchkit import custom_operators

LIBRARY = torch.library.Library("anyshape_forms", "FRAGMENT")
LIBRARY.define("half(Tensor x, float by=2.0) -> Tensor")
LIBRARY.define("half.number(Tensor x, int by) -> Tensor")
LIBRARY.impl("half", lambda x, by=2.0: x / by, "CPU")
LIBRARY.impl("half.number", lambda x, by: x // by, "CPU")
HALF = torch.ops.anyshape_forms.half


@torch.library.custom_op("anyshape_forms::more", mutates_args=())
def more(x: Tensor) -> Tensor:
    return x + 1


@pytest.mark.parametrize(
    ("form", "names"),
    [
        (HALF, ["anyshape_forms::half", "anyshape_forms::half.number"]),
        (HALF.number, ["anyshape_forms::half.number"]),
        (more, ["anyshape_forms::more"]),
        ("anyshape_forms::half.number", ["anyshape_forms::half.number"]),
        ("anyshape_forms::nothing", []),
        ("half", []),
        (torch.relu, []),
    ],
    ids=["packet", "overload", "definition", "name of an overload", "unknown name", "no name", "function of torch"],
)
def test_the_overloads_of_every_form(form: Any, names: list[str]) -> None:
    assert sorted(one.name() for one in custom_operators.overloads_of(form)) == names
    assert custom_operators.is_operator(form) is (bool(names) and not isinstance(form, str))


def test_torchs_own_are_not_custom() -> None:
    assert custom_operators.is_custom(HALF.default)
    assert not custom_operators.is_custom(torch.ops.aten.relu.default)
    assert not custom_operators.is_custom(torch.relu)
    assert HALF.default in custom_operators.custom_overloads()
    assert custom_operators.written_arguments(HALF.default) == ("x", "by=2.0")
    assert custom_operators.decomposes(torch.ops.aten.gelu.default)
    assert not custom_operators.decomposes(HALF.default)


def test_an_operator_runs_on_arrays() -> None:
    function = custom_operators.function_of(HALF.default)
    assert function.__name__ == "anyshape_forms::half"
    assert np.array_equal(function(np.full(2, 3.0, np.float32), by=1.5), np.full(2, 2.0))


def test_calls_are_answered_in_this_thread_and_the_answer_may_call_torch() -> None:
    x, heard = torch.full((2,), 6.0), []

    def answer(overload: Any, call: custom_operators.OperatorCall) -> Any:
        heard.append((overload.name(), call.span.function if call.span else None))
        return call.plainly() + 100

    with custom_operators.answered(answer), ThreadPoolExecutor(1) as other:
        results = [HALF(x), HALF(x, 4), HALF.number(x, 4), more(x)]
        elsewhere = other.submit(HALF, x).result()
    assert [float(result[0]) for result in results] == [103.0, 101.5, 101.0, 107.0]
    here = "test_calls_are_answered_in_this_thread_and_the_answer_may_call_torch"
    assert heard == [(f"anyshape_forms::{n}", here) for n in ("half", "half", "half.number", "more")]
    assert float(elsewhere[0]) == float(HALF(x)[0]) == 3.0
