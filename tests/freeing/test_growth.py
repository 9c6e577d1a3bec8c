"""Constants of fixed size that follow a dim."""

from __future__ import annotations

import numpy as np
import pytest

from anyshape.freeing.records import Bound, PinnedError

from .files import floats, freed, ints, model, run

ADD = "g (float[2, 4] x) => (float[2, 4] y) { y = Add(x, c) }"
SCORES = "g (float[2, 4, 4] x) => (float[2, 4, 4] y) { y = Add(x, c) }"


@pytest.mark.parametrize(
    ("constant", "follows"),
    [
        (np.full((2, 4), 3.0), lambda b, s: np.full((b, s), 3.0)),
        (np.arange(4.0), lambda b, s: np.arange(float(s))),
        (np.tile(np.arange(4.0) * 2 + 1, (2, 1)), lambda b, s: np.arange(s) * 2.0 + 1),
        (np.add.outer(np.arange(2.0), np.arange(4.0)), lambda b, s: np.add.outer(np.arange(b), np.arange(s))),
        (np.outer(np.arange(2.0), np.arange(4.0)), lambda b, s: np.outer(np.arange(b), np.arange(s))),
    ],
)
def test_a_formula_holds_at_every_size(constant, follows):
    result = freed(model(ADD, c=constant.astype(np.float32)), x="batch seq")
    assert result.bounds == ()
    for b, s in ((1, 1), (3, 9), (5, 2)):
        x = floats(b, s)
        np.testing.assert_allclose(run(result.model, x)[0], x + follows(b, s), rtol=1e-6)


def test_a_causal_mask_has_no_limit():
    def mask(s):
        return np.triu(np.full((s, s), -np.inf, np.float32), 1)

    result = freed(model(SCORES, c=mask(4)), x="batch seq seq")
    assert result.bounds == ()
    x = floats(3, 9, 9)
    np.testing.assert_array_equal(run(result.model, x)[0], x + mask(9))


def test_a_table_has_the_limit_of_its_rows():
    table = floats(4)
    result = freed(model(ADD, c=table), x="batch seq")
    assert result.bounds == (Bound("seq", 4, "the table `c` has 4 entries along axis 0"),)
    x = floats(3, 2)
    np.testing.assert_array_equal(run(result.model, x)[0], x + table[:2])
    with pytest.raises(Exception, match="broadcast"):
        run(result.model, floats(3, 5))


def test_a_table_that_is_the_same_for_every_sample_limits_the_sequence_only():
    result = freed(model(ADD, c=np.tile(floats(4), (2, 1))), x="batch seq")
    assert [bound.dim for bound in result.bounds] == ["seq"]


def test_positions_that_are_looked_up_reach_to_the_end_of_the_table():
    text = "g (float[2, 4, 3] x) => (float[2, 4, 3] y) { p = Gather(t, i) y = Add(x, p) }"
    table = floats(32, 3)
    result = freed(model(text, t=table, i=np.arange(4) + 2), x="batch seq _")
    assert result.bounds == (Bound("seq", 30, "the table `t` has 32 rows"),)
    x = floats(3, 20, 3)
    np.testing.assert_allclose(run(result.model, x)[0], x + table[2:22])


def test_a_part_of_a_table_becomes_a_larger_part():
    text = "g (float[2, 4, 3] x) => (float[2, 4, 3] y) { p = Slice(t, a, b, c) y = Add(x, p) }"
    table = floats(1, 32, 3)
    ends = {"a": np.array([0]), "b": np.array([4]), "c": np.array([1])}
    result = freed(model(text, t=table, **ends), x="batch seq _")
    assert [(bound.dim, bound.most) for bound in result.bounds] == [("seq", 32)]
    x = floats(3, 20, 3)
    np.testing.assert_allclose(run(result.model, x)[0], x + table[:, :20])


def test_a_chain_of_floats_is_computed_anew_and_has_no_limit():
    text = "g (float[2, 4, 3] x) => (float[2, 4, 3] y) { n = Neg(t) e = Exp(n) u = Unsqueeze(e, a) y = Mul(x, u) }"
    result = freed(model(text, t=np.arange(4, dtype=np.float32), a=np.array([1])), x="batch seq _")
    assert result.bounds == ()
    x = floats(3, 20, 3)
    np.testing.assert_allclose(run(result.model, x)[0], x * np.exp(-np.arange(20.0))[:, None], rtol=1e-5, atol=1e-7)


def test_a_limit_goes_with_the_table_that_nobody_needs():
    """The bias grows along one axis first, as a table, and along both as the formula that it is."""
    text = """g (float[2, 4, 4] x, float[2, 1, 4] m) => (float[2, 4, 4] y) { b = Abs(d) c = Add(b, m) y = Add(x, c) }"""
    distance = np.subtract.outer(np.arange(4.0), np.arange(4.0)).astype(np.float32)
    result = freed(model(text, d=distance), x="batch seq seq", m="batch _ seq")
    assert result.bounds == ()
    x, m = floats(3, 7, 7), floats(3, 1, 7)
    far = np.abs(np.subtract.outer(np.arange(7.0), np.arange(7.0)))
    np.testing.assert_allclose(run(result.model, x, m)[0], x + far + m, rtol=1e-5)


def test_a_table_of_a_picture_is_refused():
    text = "g (float[2, 3, 2, 2] x) => (float[2, 3, 4] y) { f = Reshape(x, s) y = Add(f, t) }"
    with pytest.raises(PinnedError, match="over `height` and `width`"):
        freed(model(text, s=np.array([2, 3, 4]), t=floats(4)), x="batch _ height width")


def test_a_constant_that_two_nodes_share_stays_for_the_one_that_does_not_vary():
    text = "g (float[2, 4] x, float[4] z) => (float[2, 4] y, float[4] w) { y = Add(x, c) w = Add(z, c) }"
    result = freed(model(text, c=np.arange(4, dtype=np.float32)), x="_ seq", z="_")
    y, w = run(result.model, floats(2, 7), np.zeros(4, np.float32))
    assert (y.shape, w.tolist()) == ((2, 7), [0, 1, 2, 3])


def test_slopes_of_heads_are_repeated_for_every_sample():
    text = "g (float[1, 2, 3] x) => (float[2, 3] y) { h = Reshape(x, s) y = Add(h, c) }"
    slopes = np.array([[0.5], [0.25]], np.float32)
    result = freed(model(text, s=np.array([2, 3]), c=slopes), x="batch _ _")
    assert (result.outputs, result.bounds) == ((("2*batch", "3"),), ())
    x = floats(4, 2, 3)
    np.testing.assert_allclose(run(result.model, x)[0], (x + slopes).reshape(8, 3))


def test_elements_are_gathered_from_a_table_that_follows_the_index():
    text = "g (int64[1, 4] i) => (float[1, 4] y) { y = GatherElements<axis = 1>(t, i) }"
    table = floats(1, 9)
    result = freed(model(text, t=table), i="batch seq")
    index = np.array([[3, 1, 8], [0, 0, 2]])
    np.testing.assert_array_equal(run(result.model, index)[0], table[0][index])


# ---- Growth pushed back through the nodes that compute a constant: each grows, and the file has no limit


CHAINS = {
    "elementwise": "s = Mul(n, n) c = Sin(s)",
    "a transpose": "u = Unsqueeze(n, zero) s = Sin(u) t = Transpose<perm = [1, 0]>(s) c = Squeeze(t, one)",
    "a reshape": "s = Sin(n) u = Reshape(s, column) c = Reshape(u, row)",
    "an axis that is kept": "u = Unsqueeze(n, zero) s = Sin(u) r = ReduceSum(s, zero) c = Squeeze(r, zero)",
    "rows of a product": "u = Unsqueeze(n, one) s = Sin(u) m = MatMul(s, weight) c = Squeeze(m, one)",
    "an einsum": 's = Sin(n) c = Einsum<equation = "i->i">(s)',
    "a concat": "u = Unsqueeze(n, zero) s = Sin(u) d = Concat<axis = 0>(s, s) r = ReduceMax(d, zero) "
    "c = Squeeze(r, zero)",
}
"""From whole numbers to a curve: as a constant alone it would be a table."""
CONSTANTS = {"zero": ints(0), "one": ints(1), "column": ints(6, 1), "row": ints(6), "weight": floats(1, 1)}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_from_a_ramp_follows_without_a_limit(name):
    text = f"g (float[2, 6] x) => (float[2, 6] y) {{ n = Cast<to = 1>(i) {CHAINS[name]} y = Add(x, c) }}"
    static = model(text, i=np.arange(6), **CONSTANTS)
    result = freed(static, x="batch seq")
    assert (result.outputs, result.bounds) == ((("batch", "seq"),), ())
    zeros = np.zeros((1, 6), np.float32)
    long = run(result.model, np.zeros((1, 9), np.float32))[0]
    np.testing.assert_allclose(long[:, :6], run(static, np.repeat(zeros, 2, 0))[0][:1], atol=1e-6)
    assert long.shape == (1, 9)
    assert len(np.unique(long)) > 6


def test_rows_that_are_picked_end_where_the_table_does():
    text = "g (float[2, 4] x) => (float[2, 4] y) { c = Gather(t, i) y = Add(x, c) }"
    result = freed(model(text, t=floats(9), i=np.arange(2, 6)), x="batch seq")
    assert result.bounds == (Bound("seq", 7, "the table `t` has 9 rows"),)


def test_what_is_joined_along_the_axis_does_not_grow():
    text = "g (float[4] x, float[2] z) => (float[4] y) { c = Concat<axis = 0>(z, z) y = Add(x, c) }"
    with pytest.raises(PinnedError, match="the computed `c` has 4 on axis 0 for `seq`"):
        freed(model(text), x="seq", z="_")
