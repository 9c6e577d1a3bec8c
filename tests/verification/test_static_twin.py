from __future__ import annotations

from anyshape.sizes.notation import SizeRange
from anyshape.verification.freed_file import TwinScope, check_against_file

from .pairs import pair_of, renamed

UNROLLED = """
main (float[BATCH, SEQ] x) => (float[BATCH, 1] y)
<int64[1] one = {1}, int64[1] zero = {0}, int64[1] six = {6}> { z = Slice(x, zero, six, one) y = ReduceMax(z, one) }"""
OPEN = {"batch": SizeRange(), "seq": SizeRange()}


def test_a_loop_that_was_unrolled_ignores_what_is_longer():
    done = check_against_file(pair_of(*renamed(UNROLLED, BATCH=2, SEQ=6), x="batch seq"), TwinScope(OPEN))
    (failure,) = done.verification.failures
    assert failure.sizes == {"batch": 2, "seq": 12}
    assert failure.sentence == ("ignores the second half of 12 places along `seq`, which matters in the static file")


def test_a_batch_that_went_into_another_axis_is_no_reading():
    static = "main (float[1, 3, 4] x) => (float[1, 3, 4] y) { y = Relu(x) }"
    dynamic = """
    main (float[batch, 3, 4] x) => (float[1, rows, 4] y) <int64[3] shape = {1, -1, 4}>
    { z = Relu(x) y = Reshape(z, shape) }"""
    pair = pair_of(static, dynamic, labels={"rows": "3*batch"}, x="batch _ _")
    (failure,) = check_against_file(pair, TwinScope({"batch": SizeRange()})).verification.failures
    assert failure.sentence == "`y` has 1 on axis 0, and `batch` went into `3*batch`"
