"""Sizes in sympy's arithmetic: those of files, and those of torch."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._sympy.functions import (
    BitwiseFn_bitwise_and,
    BitwiseFn_bitwise_xor,
    CeilToInt,
    FloorDiv,
    IntTrueDiv,
    LShift,
    Max,
    Min,
    Mod,
    PowByNatural,
    PythonMod,
    RShift,
    ToFloat,
    TruncToInt,
)

from anyshape.diagnosis.causes import agree
from anyshape.errors import AnyshapeError
from anyshape.sizes.expressions import (
    NO_VALUE,
    bounds_of_rest,
    dim_symbol,
    evaluate,
    evaluated,
    from_dim,
    holds,
    in_words,
    integers,
    raising,
    solved,
    spelled,
    symbols_of,
    to_condition,
    to_expression,
)
from anyshape.sizes.notation import parse_condition, parse_expression

S = dim_symbol("seq")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (S, "seq"),
        (2 * S + 1, "2*seq + 1"),
        (sympy.floor(S / 2) + 1, "seq//2 + 1"),
        (2 * sympy.floor((S + 1) / 2), "2*((seq + 1)//2)"),
    ],
)
def test_sizes_are_spelled_as_readers_write_them(size, text):
    assert spelled(size) == text
    assert eval(text, {"seq": 7}) == evaluated(size, {S: 7})


def test_strides_on_top_of_each_other_stay_short():
    size = from_dim(ir.SymbolicDim("floor((floor((seq - 1)/2) + 1 - 1)/2) + 1"))
    assert spelled(size) == "(seq - 1)//4 + 1"


def test_an_unknown_symbol_has_no_number():
    assert evaluated(S + dim_symbol("other"), {S: 3}) is None


def test_an_endless_expression_is_refused():
    with pytest.raises(AnyshapeError, match="too long"):
        from_dim(ir.SymbolicDim("+".join(f"a{k}" for k in range(2000))))


# ---- torch's symbols


a, b, c = sympy.symbols("s27 s36 s0", integer=True, positive=True)
MEANING = {a: parse_expression("seq"), b: parse_expression("past"), c: parse_expression("2*n + 1")}


def expressed(value, meaning=MEANING):
    found = to_expression(value, meaning)
    return None if found is None else str(found)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (a, "seq"),
        (a + b, "past + seq"),
        (a + 2 * b - 3, "seq + 2 * past - 3"),
        (3 - a, "3 - seq"),
        (a * b, "past * seq"),
        (a**2, "seq * seq"),
        (FloorDiv(a, 2) + 1, "seq // 2 + 1"),
        (FloorDiv(a - 1, 2) * 3, "3 * ((seq - 1) // 2)"),
        (Mod(a, 4), "seq % 4"),
        (PythonMod(a, b), "seq % past"),
        (Max(a, b), "max(past, seq)"),
        (Min(a, 512), "min(512, seq)"),
        (c, "2 * n + 1"),
        (c - 1, "2 * n"),
        (sympy.Integer(7), "7"),
        (7, "7"),
    ],
)
def test_a_size_is_written_with_the_users_dims(value, text):
    assert expressed(value) == text


@pytest.mark.parametrize(
    "value", [a / 2, a**5, sympy.sqrt(a), TruncToInt(a / 2), a ** (-1), sympy.Rational(1, 2), "text", None]
)
def test_a_size_without_such_a_form_has_none(value):
    assert expressed(value) is None


def test_a_symbol_without_a_meaning_keeps_its_name_and_is_dropped_later():
    assert expressed(sympy.Symbol("u0") + a) in ("seq + u0", "u0 + seq")


class SymbolicSize:
    """Like a SymInt: its expression stands in its node."""

    def __init__(self, expression):
        self.node = type("Node", (), {"expr": expression})()


def test_a_symbolic_size_is_read_through_its_node():
    assert expressed(SymbolicSize(a + 1)) == "seq + 1"


@pytest.mark.parametrize("text", ["n // 2 + 1", "n % 4", "min(n, 50)", "max(n, m) - 1"])
def test_a_dim_that_is_itself_rounded_stays_as_it_was_declared(text):
    meaning = {a: parse_expression(text)}
    found = to_expression(a * 2 - 1, meaning)
    for n in range(1, 30):
        assert found.value({"n": n, "m": 7}) == parse_expression(text).value({"n": n, "m": 7}) * 2 - 1


def test_names_that_sympy_knows_are_dims_like_any_other():
    for name in ("S", "N", "E", "I", "Q", "beta", "pi", "oo", "größe", "print"):
        meaning = {a: parse_expression(f"{name} + 1")}
        assert expressed(a - 1, meaning) == name


sympy_expressions = st.recursive(
    st.sampled_from([a, b, c]) | st.integers(1, 9).map(sympy.Integer),
    lambda inner: (
        st.tuples(inner, inner).map(lambda p: p[0] + p[1])
        | st.tuples(inner, inner).map(lambda p: p[0] - p[1])
        | st.tuples(inner, inner).map(lambda p: p[0] * p[1])
        | st.tuples(inner, st.integers(2, 7)).map(lambda p: FloorDiv(p[0], p[1]))
        | st.tuples(inner, inner).map(lambda p: Max(p[0], p[1]))
        | st.tuples(inner, inner).map(lambda p: Min(p[0], p[1]))
    ),
    max_leaves=5,
)
sizes = st.fixed_dictionaries({"seq": st.integers(1, 40), "past": st.integers(1, 40), "n": st.integers(1, 40)})


@settings(max_examples=80, deadline=None)
@given(sympy_expressions, sizes)
def test_an_expression_has_the_value_that_sympy_gives(value, values):
    found = to_expression(value, MEANING)
    wanted = value.xreplace({s: sympy.Integer(e.value(values)) for s, e in MEANING.items()})
    if found is not None:
        assert found.value(values) == int(wanted)
    assert found is not None or value.has(sympy.Pow)


# ---- guards


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (sympy.Le(a, 512), "seq <= 512"),
        (sympy.Eq(Mod(a, 8), 0), "seq % 8 == 0"),
        (sympy.Ne(a, b), "seq != past"),
        (sympy.Lt(a + b, 9), "past + seq < 9"),
        (sympy.Ge(a, b), "seq >= past"),
        (sympy.Gt(FloorDiv(a, 2), 1), "seq // 2 > 1"),
        (sympy.Eq(c, 9), "2 * n + 1 == 9"),
    ],
)
def test_a_guard_is_written_with_the_users_dims(condition, text):
    assert str(to_condition(condition, MEANING)) == text


@pytest.mark.parametrize(
    "condition",
    [
        sympy.Eq(sympy.Symbol("u0"), a),
        sympy.true,
        sympy.Eq(TruncToInt(a / 2), 3),
        sympy.And(sympy.Le(a, 3), sympy.Le(b, 3)),
        a,
    ],
)
def test_a_guard_on_other_things_has_no_such_form(condition):
    assert to_condition(condition, MEANING) is None


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        (sympy.Le(a, 5), {"seq": 5, "past": 1, "n": 1}, True),
        (sympy.Le(a, 5), {"seq": 6, "past": 1, "n": 1}, False),
        (sympy.Eq(Mod(a, 4), 0), {"seq": 8, "past": 1, "n": 1}, True),
        (sympy.Eq(Mod(a, 4), 0), {"seq": 9, "past": 1, "n": 1}, False),
        (sympy.Eq(TruncToInt(a / 2), 3), {"seq": 6, "past": 1, "n": 1}, True),
        (sympy.Eq(TruncToInt(a / 2), 3), {"seq": 9, "past": 1, "n": 1}, False),
        (sympy.Eq(c, 9), {"seq": 1, "past": 1, "n": 4}, True),
        (sympy.Eq(c, 9), {"seq": 1, "past": 1, "n": 5}, False),
        (sympy.Eq(sympy.Symbol("u0"), 3), {"seq": 1, "past": 1, "n": 1}, None),
        (sympy.Le(a, 5), {"past": 1}, None),
        (sympy.Eq(Mod(a, b), 0), {"seq": 3, "past": 0, "n": 1}, None),
        (sympy.Eq(BitwiseFn_bitwise_and(a, 64), 0), {"seq": 65, "past": 1, "n": 1}, False),
        (sympy.Eq(BitwiseFn_bitwise_xor(a, 5), 12), {"seq": 9, "past": 1, "n": 1}, True),
        (sympy.Eq(RShift(a, 5) + LShift(a, 2), 9 + 4 * 288), {"seq": 288, "past": 1, "n": 1}, True),
    ],
)
def test_a_guard_holds_or_not_or_cannot_be_told(condition, values, expected):
    assert holds(condition, MEANING, values) is expected


def test_the_whole_numbers_of_a_guard_are_read():
    assert integers(sympy.Le(a + 3, 512 - 2 * b)) >= {512, 2}
    assert integers(sympy.Eq(Mod(a, 8), 0)) == {8, 0}
    assert integers(sympy.Ge(a - b, -4)) == {4, 1}


# ---- equations


@pytest.mark.parametrize(
    ("condition", "size", "number"),
    [
        ("8 * batch * seq == 24 * seq", "batch", 3),
        ("540 * batch == 2160", "batch", 4),
        ("8 * batch * seq == 168", "batch * seq", 21),
        ("past + seq == 8", "past + seq", 8),
        ("16 == (h - 1) // 2 + 1", "(h - 1) // 2 + 1", 16),
    ],
)
def test_a_condition_says_which_size_is_which_number(condition: str, size: str, number: int) -> None:
    found = solved(parse_condition(condition))
    assert found is not None
    assert agree(found[0], parse_condition(f"{size} == 1").left)
    assert found[1] == number


@pytest.mark.parametrize("condition", ["batch == seq", "batch > 2", "batch % 2 == 0", "2 * n == 3 * m"])
def test_what_leaves_several_sizes_has_no_number(condition: str) -> None:
    assert solved(parse_condition(condition)) is None


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50))
def test_common_factors_do_not_matter(factor: int, batch: int, other: int) -> None:
    found = solved(parse_condition(f"{factor * other} * n == {factor * other * batch}"))
    assert found is not None
    assert (found[0].text, found[1]) == ("n", batch)


# ---- values


@settings(max_examples=40, deadline=None)
@given(sympy_expressions, st.lists(sizes, min_size=1, max_size=4))
def test_many_calls_are_computed_at_once_as_each_alone(value, calls):
    columns = {s: np.array([e.value(at) for at in calls]) for s, e in MEANING.items()}
    together = np.broadcast_to(evaluate(value, columns), len(calls))
    alone = [int(value.xreplace({s: sympy.Integer(e.value(at)) for s, e in MEANING.items()})) for at in calls]
    assert together.tolist() == alone
    assert [evaluate(value, {s: e.value(at) for s, e in MEANING.items()}) for at in calls] == alone


def test_a_part_that_was_computed_before_is_taken_from_there():
    half = FloorDiv(a, 2)
    known = {half: 100}
    assert evaluate(half + 1, {a: 40}, known) == 101
    assert known[half + 1] == 101
    assert evaluate(half + 1, {a: 40}) == 21
    assert symbols_of(half * b + 1) == {a, b}


@pytest.mark.parametrize("value", [sympy.Symbol("other"), FloorDiv(a, b), sympy.Function("unheard")(a)])
def test_what_has_no_value_raises_one_of_a_few_errors(value):
    with pytest.raises(NO_VALUE), raising():
        evaluate(value, {a: np.array([4]), b: np.array([0])})


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (sympy.Eq(BitwiseFn_bitwise_and(a, 64), 0), "seq & 64 == 0"),
        (sympy.Ne(PowByNatural(2, Mod(a, 11)), 512), "2 ** (seq % 11) != 512"),
        (sympy.And(a >= 6, b >= 6), "past >= 6 and seq >= 6"),
        (sympy.Lt(sympy.Symbol("u0", integer=True), a - 1), "? < seq - 1"),
        (TruncToInt(sympy.Float(0.6) * ToFloat(a)) > 0, "int(0.6 * float(seq)) > 0"),
    ],
)
def test_a_guard_is_written_for_people(condition, text):
    assert in_words(condition, MEANING) == text


def test_a_guard_on_bits_is_a_condition():
    condition = to_condition(sympy.Eq(BitwiseFn_bitwise_and(a, 64), 0), MEANING)
    assert str(condition) == "seq & 64 == 0"
    assert (condition.holds({"seq": 63}), condition.holds({"seq": 64})) == (True, False)


def test_a_size_of_many_sizes_is_written_part_by_part():
    """Written anew wherever it occurs, its parts would be written 2 ** 60 times."""
    size = a
    for _ in range(60):
        size = FloorDiv(3 * size + 5, 7) + 1
    assert in_words(sympy.Eq(size, 3), MEANING).count("// 7") == 60


# ---- what is surely the larger one

N, M = dim_symbol("n"), dim_symbol("m")
HALF = CeilToInt(IntTrueDiv(N, 2))


@pytest.mark.parametrize(
    ("expression", "bounds"),
    [
        (2 * HALF + 1 - N, (1, 2)),
        (2 * CeilToInt(IntTrueDiv(HALF, 2)) - HALF, (0, 1)),
        (4 * CeilToInt(IntTrueDiv(HALF, 2)) - N, (0, 3)),
        (N - 3 * FloorDiv(N, 3), (0, 2)),
        (3 - PythonMod(N, 2), (2, 3)),
        (Mod(N * M, 4) - 4, (-4, -1)),
        (HALF - FloorDiv(N, 2), (0, 1)),
        (sympy.Integer(3), (3, 3)),
        (N - M, (-sympy.oo, sympy.oo)),
        (M * HALF - N, (-sympy.oo, sympy.oo)),
        (PythonMod(N, -4), (-sympy.oo, sympy.oo)),
    ],
)
def test_what_rounding_adds_or_takes_has_bounds(expression: sympy.Expr, bounds: tuple[int, int]) -> None:
    assert bounds_of_rest(expression) == bounds
    for n in range(1, 30):
        value = expression.subs({N: n, M: 3})
        assert bounds[0] <= value <= bounds[1]
