"""What short tensors hold, as formulas."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import sympy

from anyshape.costs.size_numbers import Choice, SizeNumbers, truncated_quotient, whole_sizes

SEQ = sympy.Symbol("seq", integer=True, positive=True)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7])
@pytest.mark.parametrize("shift", [0, 1, -5, -40])
def test_division_is_towards_zero(shift: int, divisor: int) -> None:
    formula = truncated_quotient(SEQ + shift, sympy.Integer(divisor))
    for size in range(1, 60):
        assert formula.subs(SEQ, size) == int((size + shift) / divisor)


def test_a_choice_that_is_made_is_none() -> None:
    assert Choice(SEQ > 0, 1, 2) == 1
    assert Choice(SEQ > 4, SEQ, SEQ) == SEQ
    assert Choice(SEQ > 4, SEQ, 2 * SEQ).subs(SEQ, 3) == 6
    assert Choice(SEQ > 4, SEQ, 2 * SEQ).is_positive


def _constant(array: object) -> ir.Value:
    return ir.Value(name="c", const_value=ir.tensor(np.asarray(array)))


def test_constants_are_known_where_they_are_short_and_exact() -> None:
    numbers = SizeNumbers()
    assert whole_sizes(numbers.of(_constant([2, 3]))) == (2, 3)
    assert numbers.row(_constant(np.float32([0.5]))) == (sympy.Rational(1, 2),)
    assert numbers.of(_constant(np.float32([0.1]))) is None
    assert numbers.of(_constant(np.zeros(1000, np.int64))) is None
    assert numbers.row(_constant([True])) == (sympy.true,)


def test_what_depends_on_sizes_is_no_plain_number() -> None:
    assert whole_sizes(np.array([SEQ, sympy.Integer(2)], dtype=object)) is None


def test_a_node_that_contradicts_itself_tells_nothing() -> None:
    numbers, node = SizeNumbers(), ir.node("Gather", [_constant([1, 2]), _constant([7])])
    numbers.learn(node, lambda _: None)
    assert numbers.of(node.outputs[0]) is None
