"""Elementwise functions at the values where ONNX's operators, or torch's translations, part from PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.conversion.functions import wrong_results

INF, NAN = float("inf"), float("nan")
ENDS = torch.tensor([-INF, -3e38, -7.5, -1.0, -0.5, -1e-30, -0.0, 0.0, 1e-30, 1e-5, 0.1, 0.5, 1.0, 2.0, 3e38, INF, NAN])
PAIRS = [one.flatten().clone() for one in torch.meshgrid(ENDS, ENDS, indexing="ij")]
WHOLE = torch.tensor([-(2**62) - 1, -7, -6, -1, 0, 1, 6, 7, 2**53 + 1, 2**62 + 1])
WHOLE_PAIRS = [one.flatten().clone() for one in torch.meshgrid(WHOLE, WHOLE[WHOLE != 0], indexing="ij")]


def test_functions_of_one_value() -> None:
    functions = {
        "clamp": lambda x: (x.clamp(min=-1), x.clamp(max=1), x.clamp(-1, 1), x.clamp_min(0.25)),
        "clamp by a tensor": lambda x: (torch.clamp_min(x, torch.tensor(0.5)), torch.clamp_max(x, x[3])),
        "sign": lambda x: (torch.sign(x), torch.signbit(x), torch.angle(x), torch.heaviside(x, x + 1)),
        "kinds": lambda x: (x.isnan(), x.isinf(), x.isfinite()),
        "digits": lambda x: (torch.log1p(x.clamp(min=-0.5)), torch.expm1(x.clamp(max=50))),
        "frexp": torch.frexp,
        "round": lambda x: (x.ceil(), x.floor(), x.round()),
    }
    assert wrong_results(functions, ENDS) == []


@pytest.mark.parametrize("eps", [None, 0.1])
def test_odds_of_what_is_no_number(eps: float | None) -> None:
    assert wrong_results({"logit": lambda x: torch.logit(x, eps)}, ENDS) == []


def test_functions_of_two_values() -> None:
    functions = {
        "atan2": torch.atan2,
        "hypot": torch.hypot,
        "nextafter": torch.nextafter,
        "minimum": lambda x, y: (torch.minimum(x, y), torch.maximum(x, y)),
    }
    assert wrong_results(functions, *PAIRS) == []


@pytest.mark.parametrize("by", [0.1, -3.0])
def test_floors_and_remainders_of_floats(by: float) -> None:
    functions = {
        "floor_divide": lambda x, y: (torch.floor_divide(x, y), torch.floor_divide(x, by)),
        "div": lambda x, y: (torch.div(x, y, rounding_mode="floor"), torch.div(x, by, rounding_mode="trunc")),
        "remainder": lambda x, y: (torch.remainder(x, y), torch.remainder(x, by), torch.remainder(by, y)),
    }
    moderate = [one.abs().eq(3e38).logical_not() & one.abs().ne(1e-30) for one in PAIRS]
    chosen = [one[moderate[0] & moderate[1]] for one in PAIRS]
    assert wrong_results(functions, *chosen) == []


def test_whole_numbers_stay_whole() -> None:
    functions = {
        "div": lambda x, y: (torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc")),
        "floor_divide": lambda x, y: (torch.floor_divide(x, y), x // 7, x // -7),
        "remainder": lambda x, y: (torch.remainder(x, y), x % 7, x % -7, torch.fmod(x, y)),
        "gcd": lambda x, y: (torch.gcd(x, y), torch.gcd(x // 3, y)),
        "lcm": lambda x, y: torch.lcm(x % 1000, y % 100),
        "round": lambda x, y: (x.ceil(), y.floor(), x.trunc(), x.round()),
        "kinds": lambda x, y: (x.isnan(), y.isinf(), x.isfinite(), x.signbit(), x.sign(), y.angle()),
        "clamp": lambda x, y: (x.clamp(min=-3), y.clamp(max=5)),
    }
    assert wrong_results(functions, *WHOLE_PAIRS) == []


def test_the_smallest_number_is_divided_without_wrapping_around() -> None:
    ends = torch.tensor([-(2**63), -(2**63) + 1, 2**63 - 1])
    functions = {
        "floor": lambda x: (x // 7, x // -7, torch.div(x, torch.tensor([3, -3, -5]), rounding_mode="floor")),
        "by -1": lambda x: (x // -1, x % -1, x % (x // x * -1), torch.fmod(x, -1), x.int() % -1),
        "divisors": lambda x: (torch.gcd(x, x // x * -1), torch.lcm(x, x // x * -1), torch.lcm(x, x)),
    }
    assert wrong_results(functions, ends) == []


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_small_types_in_operators_that_onnx_runtime_has_for_large_ones(dtype: torch.dtype) -> None:
    functions = {
        "signs": lambda x: -x,
        "extremes": lambda x: (x.max(), x.amin(1), x.argmax(0), *x.aminmax(dim=1)),
        "divisors": lambda x: (torch.gcd(x, x[0]), torch.lcm(x, x[0])),
    }
    assert wrong_results(functions, torch.tensor([[3, 9, 1], [2, 6, 7]], dtype=dtype)) == []


def test_products_of_small_types_are_taken_in_int64() -> None:
    x = torch.tensor([[100000, -3, 70000], [2, 2, 2**30]], dtype=torch.int32)
    functions = {"prod": lambda x: (x.prod(1), x.prod(0, keepdim=True), x.to(torch.int8).prod(1))}
    assert wrong_results(functions, x) == []


def test_products_and_powers_of_whole_numbers_wrap_as_in_pytorch() -> None:
    x = torch.arange(1, 21).reshape(4, 5) * 7
    functions = {
        "prod": lambda x: (x.prod(), x.prod(0), x.prod(1, keepdim=True), x.prod(dtype=torch.int32), x[:0].prod(0)),
        "pow": lambda x: (x**13, x**2, 3 ** (x % 60), (x % 9 - 4) ** (x % 7), (x - 70) ** -(x % 2)),
        "relu": lambda x: torch.relu(x - 70),
    }
    assert wrong_results(functions, x) == []


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_shifts_of_numbers_of_any_width(dtype: torch.dtype) -> None:
    numbers, by = torch.tensor([1, -5, 100, -128, 127]).to(dtype), torch.tensor([1, 2, 3, 4, 5], dtype=dtype)
    both: dict[str, Any] = {"by a number": lambda x, _: (x << 3, x >> 1), "by each": lambda x, y: (x << y, x >> y)}
    assert wrong_results(both, numbers, by) == []
