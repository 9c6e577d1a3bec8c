from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.sizes.notation import evaluator, parse_condition, parse_expression, solve_for

EXPRESSIONS = ["a", "7", "a + b", "-a - 3 * b", "a // b + 1", "a % b", "min(a, 50, b * 2)", "max(a // 2, b) % 5"]
sizes = st.integers(0, 60)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(EXPRESSIONS), sizes, sizes)
def test_the_functions_give_what_python_gives(text, a, b):
    expression, dims = parse_expression(text), {"a": a, "b": b}
    try:
        expected = eval(text, {}, dims)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            expression.value(dims)
    else:
        assert expression.value(dims) == expected


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(EXPRESSIONS), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), sizes, sizes)
def test_conditions_hold_where_python_says_so(text, relation, a, b):
    condition = f"{text} {relation} 10"
    try:
        expected = eval(condition, {}, {"a": a, "b": b})
    except ZeroDivisionError:
        expected = False
    assert parse_condition(condition).holds({"a": a, "b": b}) == expected


@pytest.mark.parametrize(
    ("text", "size", "found"),
    [
        ("a + b", 9, 5), ("a", 7, 7), ("a * a", 49, 7), ("2 * a + 1", 7, 3),
        ("a * a", 50, None), ("a // 2", 3, None), ("a + b", 3, None), ("a * 0", 0, None), ("b // a", 4, None),
        ("a * a", 10**12, 10**6),
    ],
)  # fmt: skip
def test_a_dim_is_solved_for_where_there_is_one_answer(text, size, found):
    assert solve_for("a", evaluator(text), size, {"b": 4}) == found
