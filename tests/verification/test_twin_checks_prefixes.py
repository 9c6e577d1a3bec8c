from __future__ import annotations

from anyshape.results.verification import Failure
from anyshape.verification.twin_checks import Hiding, check_by_prefixes, hidden_outputs, hidings

from .pairs import pair_of, renamed

CAUSAL = "main (float[BATCH, SEQ] x) => (float[BATCH, SEQ] y) <int64 axis = {1}> { y = CumSum(x, axis) }"
WHOLE = "main (float[BATCH, SEQ] x) => (float[BATCH, SEQ] y) { y = Softmax<axis = 1>(x) }"
MASKED = """
main (float[BATCH, SEQ] x, int64[BATCH, SEQ] mask) => (float[BATCH, SEQ] y, float[BATCH, 1] total)
<int64[1] axis = {1}> {
  shown = Cast<to = 1>(mask)
  kept = Mul(x, shown)
  total = ReduceSum(kept, axis)
  y = Sub(x, total)
}"""
MEAN_BY_16 = """
main (float[BATCH, SEQ] x) => (float[BATCH, SEQ] y)
<int64 axis = {1}, float sixteen = {16}> { c = CumSum(x, axis) y = Div(c, sixteen) }"""
LENGTHS = [8, 1, 15, 3]


def test_a_causal_file_is_checked_by_its_prefixes_below_and_above_its_length():
    pair = pair_of(*renamed(CAUSAL, BATCH=2, SEQ=16), x="batch seq").with_samples("batch")
    assert hidden_outputs(pair, "seq", Hiding(), LENGTHS, [0]) == [0]
    outcomes = check_by_prefixes(pair, "seq", Hiding(), [*LENGTHS, 17, 32], [0])
    assert [one.sizes for one in outcomes][:2] == [{"batch": 2, "seq": 8}, {"batch": 5, "seq": 1}]
    assert [one.sizes["seq"] for one in outcomes] == [*LENGTHS, 17, 32]
    assert not any(isinstance(one, Failure) for one in outcomes)


def test_where_everything_sees_everything_prefixes_do_not_apply():
    pair = pair_of(*renamed(WHOLE, BATCH=2, SEQ=16), x="batch seq")
    assert [hidden_outputs(pair, "seq", hiding, LENGTHS, [0]) for hiding in hidings(pair, "seq")] == [[]]


def test_a_mask_hides_what_comes_later():
    pair = pair_of(*renamed(MASKED, BATCH=2, SEQ=16), x="batch seq", mask="batch seq")
    assert hidings(pair, "seq") == [Hiding(), Hiding("mask", 0), Hiding("mask", 1)]
    assert hidden_outputs(pair, "seq", Hiding(), LENGTHS, [0, 1]) == []
    assert hidden_outputs(pair, "seq", Hiding("mask", 0), LENGTHS, [0, 1]) == [0, 1]
    assert hidden_outputs(pair, "seq", Hiding("mask", 1), LENGTHS, [0, 1]) == []
    outcomes = check_by_prefixes(pair, "seq", Hiding("mask", 0), [*LENGTHS, 17], [0, 1])
    assert not any(isinstance(one, Failure) for one in outcomes)
    assert str(Hiding("mask", 0)) == "prefixes, the rest hidden by `mask` = 0"


def test_a_file_that_looks_at_the_last_step_is_found_wrong():
    static, _ = renamed(CAUSAL, BATCH=2, SEQ=16)
    dynamic = renamed(CAUSAL.replace("y = CumSum(x, axis)", "y = CumSum<reverse = 1>(x, axis)"), BATCH=2, SEQ=16)[1]
    pair = pair_of(static, dynamic, x="batch seq")
    outcomes = check_by_prefixes(pair, "seq", Hiding(), LENGTHS, [0])
    assert isinstance(outcomes[-1], Failure)
    assert outcomes[-1].sizes == {"batch": 2, "seq": 8}


def test_a_length_that_became_a_value_is_found_wrong():
    """Divided by its own length, a file that divides by 16 is wrong at every other length."""
    static, _ = renamed(MEAN_BY_16, BATCH=1, SEQ=16)
    text = """
    main (float[batch, seq] x) => (float[batch, seq] y) <int64 axis = {1}>
    { c = CumSum(x, axis) n = Shape<start = 1>(x) f = Cast<to = 1>(n) y = Div(c, f) }"""
    pair = pair_of(static, text, x="batch seq")
    assert isinstance(check_by_prefixes(pair, "seq", Hiding(), [8], [0])[0], Failure)
