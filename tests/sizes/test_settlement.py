"""Whether a condition holds at all declared sizes is proved, or sizes are found at which it does not."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._sympy import functions as f

from anyshape.sizes import expressions
from anyshape.sizes.notation import Expression, parse_condition, parse_sizes
from anyshape.sizes.settlement import (
    Question,
    SizesInQuestion,
    _ask_z3,
    _find_far,
    _find_near,
    _truth,
    find_breaks,
    truths,
)

N, M, K = sympy.symbols("s0 s1 s2", integer=True, positive=True)
MEANING = {N: Expression("n"), M: Expression("m"), K: Expression("k")}
BASE = {"n": 5, "m": 4, "k": 7}


def ask(condition, relations=(), avoided=(), before=(), **sizes):
    ranges = {dim: parse_sizes(sizes.get(dim, "1.."), dim=dim) for dim in BASE}
    declared = SizesInQuestion(ranges, tuple(map(parse_condition, relations)), BASE)
    return Question((condition, MEANING), [(one, MEANING) for one in before], declared, avoided)


def is_broken(question, sizes):
    ranges, relations = question.declared.ranges, question.declared.relations
    inside = all(size in ranges[dim] for dim, size in sizes.items()) and all(one.holds(sizes) for one in relations)
    reached = all(expressions.holds(*one, sizes) for one in question.before)
    return inside and reached and expressions.holds(*question.claim, sizes) is False


BREAKABLE = {
    "a bit": (sympy.Eq(f.BitwiseFn_bitwise_and(N, 64), 0), {"n": 64}),
    "all but some bits": (sympy.Ne(f.BitwiseFn_bitwise_and(N, -64), 640), {"n": 640}),
    "bits that differ": (sympy.Ne(f.BitwiseFn_bitwise_xor(N, 5), 12), {"n": 9}),
    "bits of either": (sympy.Ne(f.BitwiseFn_bitwise_or(N, 5), 13), {"n": 8}),
    "a difference": (sympy.Ne(N, M + 37), {"n": 40, "m": 3}),
    "a residue": (sympy.Ne(f.Mod(7 * N + 3, 499), 250), {"n": 463}),
    "a far residue": (sympy.Ne(f.Mod(7 * N + 3, 10**6 + 3), 250), {"n": 428608}),
    "a product": (sympy.Ne(N * M, K), {"n": 3, "m": 3, "k": 9}),
    "a product that is a number": (sympy.Ne(N * M, 391), {"n": 23, "m": 17}),
    "a square": (sympy.Ne(N * N, 1369**2), {"n": 1369}),
    "a quotient": (sympy.Ne(f.FloorDiv(N, 17), 23), {"n": 391}),
    "a power": (sympy.Ne(f.PowByNatural(2, f.Mod(N, 11)), 512), {"n": 9}),
    "a number beyond 64 bits": (sympy.Ne(f.PowByNatural(2, N), 2**77), {"n": 77}),
    "where a divisor is zero": (f.FloorDiv(100, N - 5) < 50, {"n": 6}),
    "a bound far out": (N <= 3 * 10**6, {"n": 3 * 10**6 + 1}),
}


@pytest.mark.parametrize("name", BREAKABLE)
def test_sizes_are_found_that_break_it(name):
    condition, expected = BREAKABLE[name]
    question = ask(condition)
    found = find_breaks(question)
    assert found.sizes[0] == {**BASE, **expected}
    assert all(is_broken(question, sizes) for sizes in found.sizes)
    assert len({tuple(sizes.values()) for sizes in found.sizes}) == len(found.sizes)


PROVABLE = {
    "a product of sizes": (sympy.Lt(1, 3 * N * M), ()),
    "by a limit": (sympy.Eq(N, f.Min(12, N)), ("n <= 12",)),
    "a product by limits": (sympy.Lt(1, N * M), ("n >= 4", "m >= 4")),
    "strides": (8 * N * M * (K - 1) + 8 * N * (M - 1) + 8 * N - 4 <= 8 * N * M * K, ()),
    "halves": (sympy.Eq(f.FloorDiv(N + f.FloorDiv(N + 1, 2) - 1, f.FloorDiv(N + 1, 2)), 2), ("n >= 2",)),
    "a float that is exact": (
        sympy.Eq(f.FloorDiv(N, 2), f.CeilToInt(f.FloatTrueDiv(f.ToFloat(f.FloorDiv(N, 2)), 1.0))), (),
    ),
    "a float that is rounded": (f.TruncToInt(0.6 * f.ToFloat(N)) > 0, ("n >= 2",)),
    "a multiple": (sympy.Eq(36 * N, 288 * f.TruncToInt(f.FloatTrueDiv(f.ToFloat(N), 8.0))), ("n % 8 == 0",)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVABLE)
def test_what_holds_in_open_ranges_is_proved(name):
    condition, relations = PROVABLE[name]
    assert find_breaks(ask(condition, relations)).is_proved


def test_what_nobody_knows_stays_open():
    fermat = find_breaks(ask(sympy.Ne(N**3 + M**3, K**3)))
    assert (fermat.is_proved, fermat.sizes) == (False, ())
    foreign = find_breaks(ask(sympy.Symbol("u0", integer=True) < N))
    assert (foreign.is_proved, foreign.sizes) == (False, ())


def test_what_is_assumed_before_is_kept():
    inner = sympy.Ne(f.Mod(N + M, 53), 17)
    assert all(sizes["n"] > sizes["m"] for sizes in find_breaks(ask(inner, before=[N > M])).sizes)
    assert find_breaks(ask(sympy.Ne(N, M), before=[N > M])).is_proved


def test_dims_that_are_tied_move_together():
    found = find_breaks(ask(sympy.Ne(N, M), ["k == n + m"], n="1..9")).sizes
    assert found
    assert all(sizes["k"] == 2 * sizes["n"] for sizes in found)


def test_sizes_that_are_avoided_are_not_found_again():
    only = sympy.Ne(N, 9)
    assert find_breaks(ask(only)).sizes == ({**BASE, "n": 9},)
    assert find_breaks(ask(only, avoided=[{"n": 9}])).is_proved


def test_without_z3_all_sizes_are_computed(monkeypatch):
    monkeypatch.setitem(sys.modules, "z3", None)
    condition = sympy.Ne(f.Mod(7 * N + 3, 499) + M, 12345)
    assert find_breaks(ask(condition, n="1..2000", m="1..300")).is_proved
    assert not find_breaks(ask(condition)).is_proved
    assert find_breaks(ask(sympy.Ne(N, 390_625))).sizes == ({**BASE, "n": 390_625},)


def test_the_same_is_found_whatever_was_asked_before():
    question = ask(sympy.Ne(N * N + M, 100_003))
    first = _ask_z3(question)
    _ask_z3(ask(sympy.Ne(N**3 + M**3, 1729)))
    assert first.sizes
    assert _ask_z3(question) == first


def test_arrays_do_not_wrap_around():
    columns = {N: np.asarray([3, 2**40], dtype=np.int64)}
    with pytest.raises(OverflowError):
        expressions.evaluate(N * N, columns)
    assert truths((N * N > 10, MEANING), [{**BASE, "n": 3}, {**BASE, "n": 2**40}]) == [False, True]


@st.composite
def _sizes(draw, depth=2):
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([N, M, N + 2, 2 * M]))
    one, number = draw(_sizes(depth - 1)), draw(st.integers(2, 9))
    other, whole = draw(_sizes(depth - 1)), f.Max(one, 0)
    ways = [one + other, one * number, one - number, f.FloorDiv(one, number), f.PythonMod(one, number)]
    ways += [f.Max(one, number), f.Min(one, other), f.BitwiseFn_bitwise_and(whole, number)]
    ways += [f.BitwiseFn_bitwise_xor(whole, number)]
    return draw(st.sampled_from(ways))


@settings(max_examples=60, deadline=None)
@given(_sizes(), st.integers(0, 40), st.sampled_from([sympy.Ne, sympy.Eq, sympy.Le, sympy.Gt]), st.booleans())
def test_every_search_agrees_with_all_sizes_one_by_one(left, right, relation, related):
    condition = relation(left, right)
    if condition in (sympy.true, sympy.false):
        return
    question = ask(condition, ["n <= m"] if related else (), n="1..14", m="2..30 step 2", k=7)
    box = itertools.product(range(1, 15), range(2, 31, 2))
    broken = [sizes for n, m in box if is_broken(question, sizes := {"n": n, "m": m, "k": 7})]
    for search in (_find_near, _ask_z3, _find_far):
        answer = search(question)
        assert not (answer.is_proved and broken)
        assert all(sizes in broken for sizes in answer.sizes)
    assert find_breaks(question).is_proved == (not broken)


def test_each_condition_is_computed_where_those_before_it_hold(monkeypatch):
    counted = []

    def truth(claim, columns):
        counted.append(max(np.size(column) for column in columns.values()))
        return _truth(claim, columns)

    monkeypatch.setattr("anyshape.sizes.settlement._truth", truth)
    answer = _find_near(ask(sympy.Ne(N % 2, 0), before=[N > 9, N < 13, sympy.Ne(N, 10)], n="1..40"))
    assert answer.sizes == ({"n": 12, "m": BASE["m"], "k": BASE["k"]},)
    assert counted == [40, 20, 16, 2]
