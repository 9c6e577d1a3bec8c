"""What counts as the same numbers: another order of sums does, another model does not."""

from __future__ import annotations

import numpy as np
import pytest

from anyshape.testbench.judgement import Tolerance
from anyshape.testbench.timed_calls import Agreement

ONES = np.ones((2, 3), np.float32)


def _agreement(moved=ONES, **options):
    return Agreement("PyTorch", lambda _: [moved], **options)


@pytest.mark.parametrize(
    ("results", "is_narrow", "sentence"),
    [
        ([ONES], False, None),
        ([ONES * 1.0005], False, None),
        ([ONES * 1.05], True, None),
        ([ONES.astype(np.float16)], True, None),
        ([ONES, ONES], False, "gives 2 outputs, PyTorch 1"),
        (
            [ONES * 1.05], False,
            "gives other numbers than PyTorch: output 0 differs by 0.05 (allowed 0.001)",
        ),
        (
            [ONES[:1]], False,
            "gives other numbers than PyTorch: output 0 has shape (1, 3), in PyTorch (2, 3)",
        ),
        (
            [ONES.astype(np.float16)], False,
            "gives other numbers than PyTorch: output 0 has type float16, in PyTorch float32",
        ),
        (
            [ONES * np.nan], False,
            "gives other numbers than PyTorch: output 0 has 6 NaN, in PyTorch 0, or at other places",
        ),
    ],
)  # fmt: skip
def test_what_is_not_the_same_is_one_sentence(results, is_narrow, sentence):
    assert _agreement().broken_by(results, [ONES], is_narrow=is_narrow) == sentence


def test_a_users_tolerance_counts_instead():
    assert _agreement(tolerance=Tolerance(rtol=0.1)).broken_by([ONES * 1.05], [ONES], is_narrow=False) is None
    assert _agreement(tolerance=Tolerance(atol=1e-6)).broken_by([ONES * 1.0005], [ONES], is_narrow=False) is not None


def test_a_choice_that_a_rounding_tips_is_the_same():
    chosen, other = np.array([1, 5]), np.array([1, 6])
    assert _agreement(moved=other).broken_by([other], [chosen], is_narrow=False) is None
    assert _agreement(moved=chosen).broken_by([other], [chosen], is_narrow=False) == (
        "gives other numbers than PyTorch: output 0 differs in 1 of 2 places, first at [1]: 6, in PyTorch 5"
    )


def test_of_random_results_shapes_are_compared():
    random = _agreement(compares_values=False)
    assert random.broken_by([ONES * 7], [ONES], is_narrow=False) is None
    assert random.broken_by([ONES[:1]], [ONES], is_narrow=False) is not None
