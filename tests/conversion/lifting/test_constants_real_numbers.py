"""Real numbers seen at several sizes become the law that somebody computed them by."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anyshape.conversion.lifting.constants import FUNCTIONS, real_number
from anyshape.sizes.expressions import dim_symbol, evaluated
from anyshape.sizes.fit import Points

BATCH, SEQ = dim_symbol("batch"), dim_symbol("seq")
SIZES = ((3, 11), (4, 10), (7, 17), (8, 5), (13, 6))
POINTS = Points(tuple({BATCH: batch, SEQ: seq} for batch, seq in SIZES), {})
PRECISION = 8 * float(np.finfo(np.float32).eps)


@pytest.mark.parametrize(
    "law",
    [
        lambda _b, _s: 0.25,
        lambda _b, s: float(s),
        lambda _b, s: 1 / s,
        lambda _b, s: 2 / (s - 1),
        lambda _b, s: math.sqrt(s),
        lambda _b, s: 3.7 / math.sqrt(s),
        lambda _b, s: math.log(s),
        lambda _b, s: math.log2(s) / 8,
        lambda b, s: 1 / (b * s),
        lambda b, _s: 1 - 1 / b,
        lambda _b, s: 0.5 / s - 1,
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_law_is_found_and_holds_elsewhere(law, dtype):
    found = real_number([float(dtype(law(*sizes))) for sizes in SIZES], POINTS, PRECISION)
    assert found is not None
    for b, s in ((2, 3), (5, 40), (30, 100)):
        size = evaluated(found.size, {BATCH: b, SEQ: s})
        value = found.factor * FUNCTIONS[found.function][1](size) + found.start if size else found.start
        assert value == pytest.approx(law(b, s), rel=2e-6)


@pytest.mark.parametrize("law", [lambda _b, s: math.sin(s), lambda b, s: b**s % 7 + 0.5, lambda b, s: s / (b + 0.3)])
def test_what_follows_nothing_has_no_law(law):
    assert real_number([law(*sizes) for sizes in SIZES], POINTS, PRECISION) is None


def test_infinity_is_a_constant_or_nothing():
    assert real_number([-math.inf] * 5, POINTS, PRECISION).start == -math.inf
    assert real_number([math.inf, 1.0, 2.0, 3.0, 4.0], POINTS, PRECISION) is None
