from __future__ import annotations

from anyshape.results.verification import Failure
from anyshape.verification.twin_checks import check_by_samples, independent_outputs

from .pairs import pair_of, renamed

ROWS = "main (float[BATCH, 4] x) => (float[BATCH, 4] y) { y = Softmax<axis = 1>(x) }"
COLUMNS = "main (float[BATCH, 4] x) => (float[BATCH, 4] y) { y = Softmax<axis = 0>(x) }"
CUMULATIVE = """
main (float[BATCH, 4] x) => (float[BATCH, 4] y) <int64 axis = {0}> { y = CumSum(x, axis) }"""
FLAT = """
main (float[BATCH, 2, 3] x) => (float[BATCHx2, 3] y) <int64[2] shape = {-1, 3}> { y = Reshape(x, shape) }"""
MEAN = "main (float[BATCH, 4] x) => (float[BATCH, 4] y, float[1, 1] m) { y = Relu(x) m = ReduceMean(x) }"


def test_rows_of_a_softmax_are_independent_samples():
    pair = pair_of(*renamed(ROWS, BATCH=3), x="batch _")
    assert independent_outputs(pair, "batch", [0]) == [0]
    outcomes = check_by_samples(pair, "batch", [1, 2, 3, 5, 6], [0])
    assert [one.sizes["batch"] for one in outcomes] == [1, 2, 3, 5, 6]
    assert not any(isinstance(one, Failure) for one in outcomes)


def test_samples_that_mix_are_noticed_by_the_control_run():
    assert independent_outputs(pair_of(*renamed(COLUMNS, BATCH=3), x="batch _"), "batch", [0]) == []


def test_samples_that_only_look_back_are_no_samples():
    """The first one is independent of the others, the last is not."""
    assert independent_outputs(pair_of(*renamed(CUMULATIVE, BATCH=3), x="batch _"), "batch", [0]) == []


def test_a_file_of_one_sample_says_how_each_one_is_treated():
    pair = pair_of(*renamed(COLUMNS, BATCH=1), x="batch _")
    assert independent_outputs(pair, "batch", [0]) == [0]
    failure = check_by_samples(pair, "batch", [1, 3], [0])[-1]
    assert isinstance(failure, Failure)
    assert (failure.rule, failure.output, failure.sizes) == ("wrong-values", "y", {"batch": 3})


def test_an_axis_may_be_a_multiple_of_the_samples():
    static, dynamic = FLAT.replace("BATCHx2", "4"), FLAT.replace("BATCHx2", "rows")
    texts = static.replace("BATCH", "2"), dynamic.replace("BATCH", "batch")
    pair = pair_of(*texts, labels={"rows": "2*batch"}, x="batch _ _")
    assert independent_outputs(pair, "batch", [0]) == [0]
    assert not any(isinstance(one, Failure) for one in check_by_samples(pair, "batch", [1, 3, 5], [0]))


def test_an_axis_of_unknown_size_cannot_be_compared():
    static, dynamic = FLAT.replace("BATCHx2", "4"), FLAT.replace("BATCHx2", "rows")
    pair = pair_of(static.replace("BATCH", "2"), dynamic.replace("BATCH", "batch"), x="batch _ _")
    assert independent_outputs(pair, "batch", [0]) == []


def test_one_number_for_all_samples_cannot_be_compared():
    pair = pair_of(*renamed(MEAN, BATCH=2), x="batch _")
    assert independent_outputs(pair, "batch", [0, 1]) == [0]


def test_a_file_that_loses_its_samples_is_wrong():
    static = ROWS.replace("BATCH", "2")
    dynamic = """
    main (float[batch, 4] x) => (float[batch, 4] y)
    <int64[1] a = {0}, int64[1] b = {2}> {
      z = Softmax<axis = 1>(x) s = Slice(z, a, b, a) e = Shape<start = 0, end = 1>(x)
      f = Constant<value_ints = [4]>() t = Concat<axis = 0>(e, f) w = ReduceSum<keepdims = 1>(s) y = Expand(w, t) }"""
    pair = pair_of(static, dynamic, x="batch _")
    (failure,) = check_by_samples(pair, "batch", [3], [0])
    assert isinstance(failure, Failure)
    assert failure.sentence.startswith("`y` differs by ")


def test_a_shape_that_is_not_the_declared_one_is_a_failure():
    static, _ = renamed(ROWS, BATCH=2)
    dynamic = """
    main (float[batch, 4] x) => (float[batch, 4] y) { z = Softmax<axis = 1>(x) y = Concat<axis = 0>(z, z) }"""
    (failure,) = check_by_samples(pair_of(static, dynamic, x="batch _"), "batch", [3], [0])
    assert isinstance(failure, Failure)
    assert failure.sentence == "`y` declares `batch` = 3 on axis 0 but has shape (6, 4)"
