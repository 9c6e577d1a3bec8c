"""Sums of products, whose weights pin an axis."""

import pytest

from anyshape.freeing.records import PinnedError
from tests.freeing.files import floats, freed, model


def test_weights_along_an_axis_pin_it():
    with pytest.raises(PinnedError, match="sums over `seq` with `w`, which has 4 on axis 0"):
        freed(model("g (float[2, 4] x) => (float[2, 3] y) { y = MatMul(x, w) }", w=floats(4, 3)), x="batch seq")
    with pytest.raises(PinnedError, match="channels of the weights `w`"):
        freed(model("g (float[2, 4, 5] x) => (float[a, b, c] y) { y = Conv(x, w) }", w=floats(3, 4, 1)), x="_ seq _")
