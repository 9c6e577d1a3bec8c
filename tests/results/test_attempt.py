"""What a trace assumed, asked at other sizes; and an operator that stops every strategy."""

from __future__ import annotations

import sympy

from anyshape.results.attempt import Attempt, Guard, UntranslatedOperatorError, hold
from anyshape.sizes.notation import parse_condition, parse_expression
from anyshape.source.spans import Span

S0, S1 = sympy.Symbol("s0", integer=True), sympy.Symbol("s1", integer=True)
MEANING = {S0: parse_expression("batch"), S1: parse_expression("2 * seq + 1")}


def _guard(expression: sympy.Basic) -> Guard:
    return Guard(expression, MEANING, parse_condition("batch > 2"), None)


def test_a_guard_holds_where_its_expression_does() -> None:
    guard = _guard(sympy.Gt(S0, 2))
    assert (guard.holds({"batch": 3}), guard.holds({"batch": 2})) == (True, False)


def test_a_guard_knows_its_numbers_and_the_dims_behind_its_symbols() -> None:
    guard = _guard(sympy.Eq(S0 + S1, 12))
    assert guard.constants == {12}
    assert guard.dims == ("batch", "seq")
    assert _guard(sympy.Gt(sympy.Symbol("s9"), 2)).dims == ()


def test_guards_hold_together() -> None:
    guards = [_guard(sympy.Gt(S0, 2)), _guard(sympy.Lt(S1, 9))]
    assert hold(guards, {"batch": 3, "seq": 3})
    assert not hold(guards, {"batch": 3, "seq": 4})
    assert hold([], {})


def test_two_attempts_are_equal_whatever_was_raised() -> None:
    assert Attempt("a", "failed", error=ValueError("x")) == Attempt("a", "failed", error=ValueError("y"))


def test_an_operator_without_a_translation_says_what_it_lacks() -> None:
    span = Span("net.py", 3)
    error = UntranslatedOperatorError("my::norm", "my.norm.default", ("x", "eps=1e-05"), span, "why", shapeless=False)
    assert str(error) == "`my::norm` has no ONNX translation; why"
    assert (error.name, error.overload, error.arguments, error.span) == (
        "my::norm", "my.norm.default", ("x", "eps=1e-05"), span,
    )  # fmt: skip
    shapeless = UntranslatedOperatorError("my::norm", "my.norm.default", (), None, "why", shapeless=True)
    assert str(shapeless) == "`my::norm` has no shape; why"
