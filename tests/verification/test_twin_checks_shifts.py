from __future__ import annotations

import pytest

from anyshape.results.verification import Failure
from anyshape.verification.twin_checks import check_by_shifts, reaches, steps_of

from .pairs import pair_of, renamed

WEIGHTS = "<float[1, 1, 3] w = {0.5, 2, -1}>"
BLURRED = f"main (float[1, 1, WIDTH] x) => (float[1, 1, WIDTH] y) {WEIGHTS} {{ y = Conv<pads = [1, 1]>(x, w) }}"
HALVED = f"""
main (float[1, 1, WIDTH] x) => (float[1, 1, HALF] y) {WEIGHTS} {{ y = Conv<pads = [1, 1], strides = [2]>(x, w) }}"""
POOLED = f"""
main (float[1, 1, WIDTH] x) => (float[1, 1, WIDTH] y) {WEIGHTS}
{{ c = Conv<pads = [1, 1]>(x, w) m = GlobalAveragePool(c) y = Add(c, m) }}"""
NUMBERED = """
main (float[1, 1, WIDTH] x) => (float[1, 1, WIDTH] y)
{ n = Shape(x) one = ConstantOfShape<value = float[1] {1}>(n) a = Constant<value_int = 2>()
  p = CumSum(one, a) y = Add(x, p) }"""


def outcomes_of(pair, dim="width", size=16, larger=(20, 24)):
    steps = steps_of(size)
    found = [reaches(pair, dim, step, [0]) for step in steps]
    assert all(found)
    return check_by_shifts(pair, dim, steps, found, larger)


@pytest.mark.parametrize(("size", "steps"), [(224, [32, 96, 160]), (16, [4, 8]), (7, [1, 3, 5]), (3, []), (2, [])])
def test_inputs_are_cut_by_multiples_of_a_stride(size, steps):
    assert steps_of(size) == steps


def test_a_convolution_is_checked_from_both_ends_and_on_a_larger_input():
    outcomes = outcomes_of(pair_of(*renamed(BLURRED, WIDTH=16), x="_ _ width"))
    assert [one.sizes["width"] for one in outcomes] == [12, 8, 12, 8, 20, 24]
    assert not any(isinstance(one, Failure) for one in outcomes)


def test_a_stride_moves_the_output_by_less_than_the_input():
    static, dynamic = renamed(HALVED, WIDTH=16, HALF=8)
    pair = pair_of(static, dynamic, labels={"half": "(width + 1)//2"}, x="_ _ width")
    outcomes = outcomes_of(pair)
    assert [one.sizes["width"] for one in outcomes] == [12, 8, 12, 8, 20, 24]
    assert not any(isinstance(one, Failure) for one in outcomes)


def test_what_looks_at_everything_at_once_is_left_alone():
    assert reaches(pair_of(*renamed(POOLED, WIDTH=16), x="_ _ width"), "width", 4, [0]) == {}


def test_what_counts_places_is_left_alone():
    assert reaches(pair_of(*renamed(NUMBERED, WIDTH=16), x="_ _ width"), "width", 4, [0]) == {}


def test_padding_at_the_wrong_end_is_found_wrong():
    """Right at the file's own size, and at the start of any other."""
    static, _ = renamed(BLURRED, WIDTH=16)
    dynamic = """
    main (float[1, 1, width] x) => (float[1, 1, width] y)
    <float[1, 1, 3] w = {0.5, 2, -1}, int64[6] own = {0, 0, 1, 0, 0, 1}, int64 sixteen = {16}, float zero = {0},
     float one = {1}> {
      n = Shape<start = 2>(x) is = Equal(n, sixteen) fill = Where(is, zero, one) f = Squeeze(fill)
      p = Pad(x, own, f) y = Conv(p, w) }"""
    outcomes = outcomes_of(pair_of(static, dynamic, x="_ _ width"))
    assert isinstance(outcomes[-1], Failure)
