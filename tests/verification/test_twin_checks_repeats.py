from __future__ import annotations

import pytest

from anyshape.results.verification import Failure
from anyshape.verification.twin_checks import check_by_repeats, periods_of, repeatable_outputs, sizes_for

from .pairs import pair_of, renamed

ATTENTION = """
main (float[BATCH, SEQ, 4] x) => (float[BATCH, SEQ, 4] y) {
  k = Transpose<perm = [0, 2, 1]>(x)
  s = MatMul(x, k)
  w = Softmax<axis = 2>(s)
  y = MatMul(w, x)
}"""
MEAN = "main (float[BATCH, SEQ, 4] x) => (float[BATCH, 4] y) <int64[1] a = {1}> { y = ReduceMean<keepdims = 0>(x, a) }"
SUM = MEAN.replace("ReduceMean", "ReduceSum")
CUMULATIVE = "main (float[BATCH, SEQ, 4] x) => (float[BATCH, SEQ, 4] y) <int64 a = {1}> { y = CumSum(x, a) }"


def both(text):
    return pair_of(*renamed(text, BATCH=2, SEQ=12), x="batch seq _").with_samples("batch")


@pytest.mark.parametrize(("size", "periods"), [(16, [8, 4, 2]), (12, [6, 4, 3]), (7, []), (1, [])])
def test_periods_are_the_largest_divisors(size, periods):
    assert periods_of(size) == periods


@pytest.mark.parametrize("text", [ATTENTION, MEAN])
def test_where_order_does_not_matter_repeated_places_tell(text):
    pair = both(text)
    assert repeatable_outputs(pair, "seq", [0]) == [0]
    outcomes = check_by_repeats(pair, "seq", sizes_for(12), [0])
    assert [one.sizes["seq"] for one in outcomes] == [6, 4, 3, 18, 12, 9, 30, 20, 15]
    assert {one.sizes["batch"] for one in outcomes} == {2, 5}
    assert not any(isinstance(one, Failure) for one in outcomes)


def test_where_order_matters_they_do_not_apply():
    assert repeatable_outputs(both(CUMULATIVE), "seq", [0]) == []


def test_a_sum_passes_the_control_runs_and_differs():
    pair = both(SUM)
    assert repeatable_outputs(pair, "seq", [0]) == [0]
    assert check_by_repeats(pair, "seq", [6], [0])[0].rule == "wrong-values"


def test_a_file_that_looks_at_its_own_length_alone_differs():
    """Repeated in turn, all places stand among the first ones; in groups, they do not."""
    dynamic = """
    main (float[batch, seq, 4] x) => (float[batch, 4] y)
    <int64[1] a = {1}, int64[1] zero = {0}, int64[1] n = {12}>
    { s = Slice(x, zero, n, a) y = ReduceMean<keepdims = 0>(s, a) }"""
    pair = pair_of(renamed(MEAN, BATCH=2, SEQ=12)[0], dynamic, x="batch seq _")
    outcomes = check_by_repeats(pair, "seq", [6, 12, 18], [0])
    assert [isinstance(one, Failure) for one in outcomes] == [False, False, True]


def test_a_mean_over_a_fixed_number_of_places_differs():
    dynamic = """
    main (float[batch, seq, 4] x) => (float[batch, 4] y)
    <int64[1] a = {1}, float n = {12}> { s = ReduceSum<keepdims = 0>(x, a) y = Div(s, n) }"""
    pair = pair_of(renamed(MEAN, BATCH=2, SEQ=12)[0], dynamic, x="batch seq _")
    assert isinstance(check_by_repeats(pair, "seq", [6], [0])[0], Failure)
