from __future__ import annotations

import pytest

from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange
from anyshape.testbench.plan import Budget
from anyshape.verification.freed_file import TwinScope, check_against_file

from .pairs import pair_of, renamed

CAUSAL = "main (float[BATCH, SEQ] x) => (float[BATCH, SEQ] y) <int64 axis = {1}> { y = CumSum(x, axis) }"
TWO = """
main (float[BATCH, SEQ] x) => (float[BATCH, SEQ] y, float[BATCH, 1] last)
<int64 axis = {1}, int64[1] one = {1}, int64[1] start = {-1}, int64[1] end = {1000}> {
  y = CumSum(x, axis)
  last = Slice(y, start, end, one)
}"""
OPEN = {"batch": SizeRange(), "seq": SizeRange()}


def checked(text, *, ranges=OPEN, seconds=10.0, dynamic=None):
    static, named = renamed(text, BATCH=2, SEQ=6)
    return check_against_file(
        pair_of(static, dynamic or named, x="batch seq"), TwinScope(ranges, budget=Budget(seconds))
    )


def test_samples_come_first_and_each_dim_says_how_it_was_checked():
    done = checked(CAUSAL)
    assert {report.dim: report.sentence for report in done.reports} == {
        "batch": "1 to 5 (5 sizes), sample by sample",
        "seq": "1 to 12 (6 sizes), by prefixes",
    }
    assert done.unchecked == ()
    assert done.verification.is_right


def test_an_output_that_no_check_covers_leaves_its_dim_unchecked():
    done = checked(TWO)
    (report,) = done.unchecked
    assert (report.dim, report.left, report.ways) == ("seq", ("last",), ("by prefixes",))
    assert report.sentence.endswith("by prefixes and never: `last`")
    assert done.verification.is_right


def test_only_declared_sizes_are_run():
    done = checked(CAUSAL, ranges={"batch": SizeRange(1, 3), "seq": SizeRange(2, 6, 2)})
    sizes = done.verification.sizes_run
    assert {one["batch"] for one in sizes} <= {1, 2, 3, 5}
    assert {one["seq"] for one in sizes} == {2, 6}


def test_without_time_few_sizes_are_run_and_the_others_are_told():
    done = checked(CAUSAL, seconds=0.0)
    assert done.reports[0].sentence == "1 to 3 (2 sizes), sample by sample"
    assert ({"batch": 5, "seq": 6}, "the budget was used up") in done.verification.skipped
    assert not any(sizes in done.verification.sizes_run for sizes, _ in done.verification.skipped)


@pytest.mark.parametrize("work", ["WORK_OF_A_CALL", "WORK_OF_A_VALUE"])
def test_by_itself_a_check_is_cut_by_work(monkeypatch, work):
    """Of both files, and of making what they are fed."""
    monkeypatch.setattr(budgets, work, budgets.WORK_TO_CHECK)
    done = checked(CAUSAL, seconds=None)
    assert done.reports[0].sentence == "1 to 3 (2 sizes), sample by sample"
    assert {reason for _, reason in done.verification.skipped} == {
        "predicted to be more work than a check takes by itself (budget= allows more)"
    }
    assert checked(CAUSAL, seconds=60.0).verification.skipped == ()


def test_a_file_that_is_wrong_at_its_own_sizes_ends_it_all():
    dynamic = "main (float[batch, seq] x) => (float[batch, seq] y) { y = Neg(x) }"
    done = checked(CAUSAL, dynamic=dynamic)
    assert done.reports == ()
    assert [one.rule for one in done.verification.failures] == ["wrong-values"]
