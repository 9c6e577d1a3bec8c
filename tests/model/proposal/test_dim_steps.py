from __future__ import annotations

import math

import pytest

from anyshape.model.proposal.dim_steps import DimSteps, steps_of


def outputs(accepts, shape=lambda size: ((size, 4),)):
    return lambda size: shape(size) if accepts(size) else None


def test_a_model_that_takes_what_lies_between_has_no_step():
    assert steps_of((8, 24), outputs(lambda n: n > 0)) == DimSteps()


def test_sizes_that_differ_by_one_need_no_run():
    def never(size):
        raise AssertionError

    assert steps_of((7, 8), never) == DimSteps()


@pytest.mark.parametrize("column", [(8, 24), (16, 24), (8, 16), (32, 16, 56)])
def test_the_smallest_step_is_found(column):
    found = steps_of(column, outputs(lambda n: n % 4 == 0))
    assert (found.step, found.lowest, found.notation) == (4, 4, "4.. step 4")


def test_a_step_need_not_start_at_a_multiple():
    assert steps_of((33, 65), outputs(lambda n: n % 16 == 1)).notation == "1.. step 16"


def test_the_lowest_size_is_one_that_runs():
    assert steps_of((48, 80), outputs(lambda n: n % 8 == 0 and n >= 24)).notation == "24.. step 8"


def test_a_bound_just_above_the_calls_does_not_hide_the_step():
    assert steps_of((16, 32), outputs(lambda n: n % 8 == 0 and n <= 32)).notation == "8.. step 8"


def test_a_step_at_which_another_axis_starts_to_move_is_none():
    """`int(15 / 6.0)` windows and a view that takes what is left: it runs, and channels are no longer channels."""

    def shape(size):
        windows = size // 6
        return ((windows, 8 * size // (6 * windows)),)

    assert steps_of((12, 24), outputs(lambda n: n % 3 == 0 and n >= 6, shape)).notation == "6.. step 6"


def test_a_grid_of_tokens_is_a_square():
    found = steps_of((16, 25), outputs(lambda n: math.isqrt(n) ** 2 == n))
    assert found.is_square
    assert found.notation is None


def test_a_size_of_zero_in_a_call_is_meant():
    assert steps_of((0, 5), outputs(lambda n: True)).notation == "0.."


def test_where_only_the_sizes_of_the_calls_run_no_step_is_claimed():
    assert steps_of((8, 24), outputs(lambda n: n in (8, 24))) == DimSteps()
