"""Growth pushed back through the nodes that compute a constant: each grows, and the file has no limit but a table's."""

import numpy as np
import pytest

from anyshape.freeing.records import Bound, PinnedError

from .files import floats, freed, ints, model, run

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
