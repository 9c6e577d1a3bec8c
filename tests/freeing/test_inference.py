"""Values of what is computed from constants alone, and at the file's own sizes of what is computed from sizes."""

from __future__ import annotations

import numpy as np
import pytest

from anyshape.freeing.inference import Evaluator

from .files import ints, model

TEXT = """g (float[2, 3] x) => (float[2, 3] y) {
    s = Shape<start = 1>(x) t = Add(s, one) c = Mul(one, two) e = Concat<axis = 0>(c, c)
    r = RandomNormal<shape = [1]>() d = Add(r, r) y = Relu(x) }"""


@pytest.fixture
def values():
    static = model(TEXT, one=ints(1), two=ints(2))
    return static, {value.name: value for node in static.graph for value in node.outputs}


def test_a_chain_of_constants_has_a_value(values):
    static, by_name = values
    evaluator = Evaluator(static)
    np.testing.assert_array_equal(evaluator.value(by_name["e"]), [2, 2])
    assert evaluator.value(None) is None


def test_what_depends_on_inputs_or_on_chance_has_none(values):
    static, by_name = values
    evaluator = Evaluator(static)
    assert all(evaluator.value(by_name[name]) is None for name in ("s", "t", "y", "r", "d"))


def test_with_observed_shapes_sizes_have_values(values):
    static, by_name = values
    at_file = Evaluator(static, {"x": (2, 3)})
    np.testing.assert_array_equal(at_file.value(by_name["t"]), [4])
