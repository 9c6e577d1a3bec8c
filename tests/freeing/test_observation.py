"""What is fed to a file, and the values of its constants."""

import numpy as np

from anyshape.freeing.constant_values import Evaluator
from anyshape.freeing.observation import feeds, guesses, observe

from .files import floats, model


def test_shapes_of_all_tensors_come_from_one_run():
    static = model("g (float[2, 4] x) => (float[4, 2] y) { a = Relu(x) y = Transpose(a) }")
    assert observe(static, {"x": (2, 4)}, None) == {"x": (2, 4), "a": (2, 4), "y": (4, 2)}


def test_indices_stay_below_their_table_and_masks_are_ones():
    text = "g (int64[2, 50] ids, int64[2, 50] mask) => (float[2, 50, 3] y) { c = Cast<to = 7>(ids) y = Gather(t, c) }"
    given = feeds(model(text, t=floats(5, 3)).graph, {"ids": (2, 50), "mask": (2, 50)})
    assert (given["ids"].min(), given["ids"].max(), given["mask"].all()) == (0, 4, True)


def test_open_axes_are_tried_with_different_sizes_first():
    first, second, *_ = guesses(["a", "b"])
    assert (first, second) == ({"a": 3, "b": 5}, {"a": 1, "b": 1})


def test_values_are_computed_from_constants_alone():
    text = "g (float[2, 4] x) => (float[2, 4] y) { r = Range(z, n, o) s = Add(r, r) t = Shape(x) y = Add(x, x) }"
    static = model(text, z=np.array(0), n=np.array(3), o=np.array(1))
    values = {value.name: value for node in static.graph for value in node.outputs}
    evaluator = Evaluator(static)
    assert evaluator.value(values["s"]).tolist() == [0, 2, 4]
    assert evaluator.value(values["y"]) is None
    assert evaluator.value(values["t"]) is None
    assert Evaluator(static, {"x": (2, 4)}).value(values["t"]).tolist() == [2, 4]
