from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anyshape.sizes.fit import FormulaKind, are_squares, formulas, largest_step, moves

columns = st.lists(st.tuples(*[st.integers(1, 40)] * 3).filter(moves), min_size=1, max_size=4)
FORMS = {
    "{0}": lambda a, b: a,
    "{0} + {1}": lambda a, b: a + b,
    "{0} + {1} + 1": lambda a, b: a + b + 1,
    "{0} + 1": lambda a, b: a + 1,
    "{0} + 2": lambda a, b: a + 2,
    "3 * {0}": lambda a, b: 3 * a,
    "{0} * {1}": lambda a, b: a * b,
    "{0} * {1} + 1": lambda a, b: a * b + 1,
    "{0} // 2 + 1": lambda a, b: a // 2 + 1,
    "({0} + 3) // 4": lambda a, b: -(-a // 4),
    "2 * {0} - 1": lambda a, b: 2 * a - 1,
}


def written(column, others, **options):
    return [formula.text({i: "abcd"[i] for i in range(len(others))}) for formula in formulas(column, others, **options)]


@settings(max_examples=150, deadline=None)
@given(columns.filter(lambda found: len(found) > 1))
def test_every_reading_computes_the_column_in_all_calls(found):
    column, *others = found
    for formula in formulas(column, others):
        for call, size in enumerate(column):
            assert formula.value({i: other[call] for i, other in enumerate(others)}) == size


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(FORMS)), columns.filter(lambda found: len(found) > 1))
def test_a_column_that_was_computed_in_a_known_way_is_read_so(form, others):
    column = tuple(FORMS[form](a, b) for a, b in zip(*others[:2], strict=True))
    assume(moves(column))
    assume("// 4" not in form or any(size % 4 for size in others[0]))  # else the larger is a multiple of the smaller
    assert form.format("a", "b") in written(column, others[:2])


@settings(max_examples=80, deadline=None)
@given(columns)
def test_plainer_readings_come_first(found):
    kinds = [formula.kind for formula in formulas(found[0], found)]
    assert kinds == sorted(kinds)
    assert kinds[0] == FormulaKind.SAME


@pytest.mark.parametrize(
    ("column", "others", "texts"),
    [
        ((5, 7), [(5, 7)], ["a"]),
        ((8, 13), [(3, 4), (5, 9)], ["a + b"]),
        ((6, 9), [(5, 8)], ["a + 1"]),
        ((10, 16), [(5, 8)], ["2 * a"]),
        ((24, 35), [(4, 5), (6, 7)], ["a * b"]),
        ((25, 36), [(4, 5), (6, 7)], ["a * b + 1"]),
        ((16, 49), [(4, 7)], ["a * a"]),
        ((9, 12), [(6, 8)], ["3 * a // 2"]),
        ((9, 11), [(16, 20)], ["a // 2 + 1"]),
        ((3, 4), [(9, 16)], ["(a + 3) // 4"]),
        ((3, 5), [(9, 18)], ["a // 4 + 1", "(a + 3) // 4"]),
        ((9, 15), [(5, 8)], ["2 * a - 1"]),
        ((11, 17), [(5, 8)], ["2 * a + 1"]),
        ((13, 22, 28), [(4, 7, 9)], ["3 * a + 1"]),
        ((12, 15, 22), [(2, 3, 4), (4, 5, 8), (6, 7, 10)], ["a + b + c"]),
        ((4, 6), [(2, 3), (2, 3)], ["a + b", "2 * a", "2 * b"]),
        ((5, 9), [(3, 4)], []),
    ],
)
def test_all_readings_of_one_column(column, others, texts):
    assert written(column, others) == texts


def test_a_size_that_stands_still_may_be_added():
    assert written((12, 15), [(7, 10)]) == []
    assert written((12, 15), [(7, 10)], still={5, 9}) == ["a + 5"]


def test_two_calls_are_not_believed_every_line():
    assert written((13, 22), [(4, 7)]) == []


def test_a_smaller_column_is_no_multiple_of_a_larger_one():
    assert written((5, 8), [(10, 16)]) == []


@pytest.mark.parametrize(("column", "step"), [((8, 24), 16), ((8, 24, 32), 8), ((33, 65), 32), ((5, 6), 1)])
def test_the_largest_step_leads_from_each_size_to_every_other(column, step):
    assert largest_step(column) == step


def test_squares_are_seen_in_all_calls():
    assert are_squares((16, 25))
    assert not are_squares((16, 24))
