"""What a size costs is predicted from those that were measured."""

from __future__ import annotations

import pytest

from anyshape.bench.plan import Budget


def measured(*rows, seconds=100.0, memory=None):
    budget = Budget(seconds, memory)
    for row in rows:
        budget.measured(*row)
    return budget


def test_without_time_nothing_is_run():
    assert measured(seconds=0.0).refuses(1, 0) == "the budget was used up"
    assert not measured(seconds=0.0).is_cheap(1)


@pytest.mark.parametrize(
    ("volume", "reason"),
    [(2**15, None), (10**6, None), (10**7, "predicted to take longer than the budget")],
)
def test_time_grows_with_the_square_of_the_largest_that_was_measured(volume, reason):
    assert measured((10, 0.001), (10**6, 2.0)).refuses(volume, 0) == reason


def test_small_sizes_are_run_whatever_was_measured():
    assert measured((10, 99.0)).refuses(2**15, 0) is None


@pytest.mark.parametrize(
    ("volume", "largest", "is_refused"), [(100, 0, False), (10**6, 0, True), (70_000, 10**5, True)]
)
def test_memory_is_predicted_from_inputs_and_from_the_largest_result(volume, largest, is_refused):
    found = measured((1000, 0.0001), memory=3 * 10**6).refuses(volume, largest)
    assert found == ("predicted to need more memory than there is" if is_refused else None)


def test_a_size_teaches_something_where_it_is_much_larger_than_those_known():
    budget = measured((100, 0.1))
    assert [budget.is_cheap(volume) for volume in (100, 400, 401, 2**15, 2**15 + 1)] == [
        False,
        False,
        True,
        True,
        False,
    ]
