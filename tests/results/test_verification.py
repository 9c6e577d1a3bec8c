"""What became of the runs of one file."""

from __future__ import annotations

import math

import pytest

from anyshape.results.result import Result
from anyshape.results.verification import Check, Failure, Verification, evidence_of

WRONG = Failure({"n": 5}, 0, "wrong-values", "y", "`y` differs")


def _checked(*ratios: float, **given: object) -> Verification:
    checks = [Check({"n": size, "m": 2}, 0, ratio) for size, ratio in enumerate(ratios, 3)]
    return Verification(tuple(checks), **given)  # type: ignore[arg-type]


def test_a_file_is_right_once_something_ran_and_nothing_failed() -> None:
    assert _checked(0.5).is_right
    assert not Verification().is_right
    assert not _checked(0.5, failures=(WRONG,)).is_right


def test_sizes_are_told_once_whatever_the_contents() -> None:
    twice = Verification((Check({"n": 3}, 0, 0.1), Check({"n": 3}, 1, 0.9), Check({"n": 4}, 0, 0.2)))
    assert twice.sizes_run == ({"n": 3}, {"n": 4})
    assert twice.largest_ratio == 0.9


def test_the_contract_gets_the_ends_of_what_was_run() -> None:
    evidence = evidence_of(_checked(0.5, 1.234, 0.1, factor=8.0, runtime="ONNX Runtime 1", against="PyTorch"))
    assert (evidence.sizes, evidence.ranges) == (3, {"n": (3, 5), "m": (2, 2)})
    assert (evidence.error, evidence.allowed, evidence.against) == (1.23, 8.0, "PyTorch")


@pytest.mark.parametrize("given", [_checked(0.5), _checked(math.inf, factor=8.0)], ids=["not compared", "infinite"])
def test_an_error_that_was_not_measured_is_none(given: Verification) -> None:
    assert evidence_of(given).error is None


def test_without_a_run_nothing_is_claimed() -> None:
    evidence = evidence_of(Verification())
    assert (evidence.sizes, dict(evidence.ranges)) == (0, {})


def test_a_ratio_is_rounded_once_for_all_who_tell_it() -> None:
    """1.3496 is 1.35 in two digits, and would be 1.4 in one after 1.3 was told."""
    verification = Verification((Check({}, 0, 1.3496),), factor=8.0)
    assert verification.largest_ratio == evidence_of(verification).error == 1.35
    assert "error    at most 1.4 x " in str(Result("checked", verification=verification))
    assert "error at most 1.4 x " in str(evidence_of(verification))
