"""Formulas of sizes in z3 mean what they mean in Python."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from anyshape.sizes.z3_algebra import algebra_of

z3 = pytest.importorskip("z3")

INTEGERS = {
    "FloorDiv": lambda a, b: a // b,
    "Mod": lambda a, b: a % b,
    "CeilDiv": lambda a, b: -(-a // b),
    "BitwiseFn_bitwise_and": lambda a, b: a & b,
    "BitwiseFn_bitwise_or": lambda a, b: a | b,
    "BitwiseFn_bitwise_xor": lambda a, b: a ^ b,
    "Min": min,
    "Max": max,
}


def value_of(name: str, *given: Any) -> Any:
    """What z3 computes for whole numbers that it may not know before."""
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    algebra = algebra_of(z3, context, solver.add)
    first = z3.Int("first", context)
    solver.add(first == given[0])
    result = z3.Int("result", context)
    solver.add(result == algebra[name](first, *given[1:]))
    assert solver.check() == z3.sat
    return solver.model()[result].as_long()


@pytest.mark.parametrize("name", INTEGERS)
def test_whole_numbers_are_python_s(name: str) -> None:
    for a, b in itertools.product((1, 6, 7, 64), (2, 5, 64)):
        assert value_of(name, a, b) == INTEGERS[name](a, b)


def test_division_goes_down_for_negative_divisors_too() -> None:
    assert value_of("FloorDiv", 7, -2) == 7 // -2
    assert value_of("Mod", 7, -2) == 7 % -2


def test_a_float_may_be_a_rounding_away() -> None:
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    algebra = algebra_of(z3, context, solver.add)
    n = z3.Int("n", context)
    third = algebra["FloatTrueDiv"](n, 3)
    solver.add(n == 1, third * 3 < 1)
    assert solver.check() == z3.sat  # as in floats
