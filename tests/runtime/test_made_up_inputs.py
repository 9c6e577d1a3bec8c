from __future__ import annotations

import tracemalloc

import numpy as np
import onnx.parser
import pytest

from anyshape.errors import DeclarationError
from anyshape.onnxfile.interface import Interface, Port, read_interface
from anyshape.runtime.made_up_inputs import CONTENTS, Calls, Contents, axes_by_input, find_contents
from anyshape.runtime.session import Session

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
TABLE = f"""
main (int64[2, 5] ids, int64[2, 5] attention_mask) => (float[2, 5] y)
<float[40] table = {{{", ".join(map(str, range(40)))}}}> {{ y = Gather(table, ids) }}"""


def contents_of(text):
    model = onnx.parser.parse_model(HEAD + text)
    return find_contents(Session(model.SerializeToString()), read_interface(model).inputs, 0)


def test_integers_stay_inside_the_table_that_they_index():
    contents = contents_of(TABLE)
    assert contents.below["ids"] == 30
    feeds = contents.make({"ids": (50, 7), "attention_mask": (50, 7)}, 3)
    assert feeds["ids"].max() == 29
    assert set(np.unique(feeds["attention_mask"])) == {0, 1}
    assert feeds["attention_mask"][:, 0].all()


def test_other_numbers_give_other_values_and_the_same_number_the_same():
    contents = contents_of(TABLE)
    shapes = {"ids": (2, 5), "attention_mask": (2, 5)}
    first, again, other = (contents.make(shapes, number)["ids"] for number in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_floats_are_positive_where_others_give_no_numbers():
    assert contents_of("main (float[8] x) => (float[8] y) { y = Log(x) }").make({"x": (100,)}, 0)["x"].min() >= 0
    assert contents_of("main (float[8] x) => (float[8] y) { y = Abs(x) }").make({"x": (100,)}, 0)["x"].min() < 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool"])
def test_a_long_input_is_made_without_wider_copies_of_it(dtype):
    ports, shapes = (Port("x", dtype, (2**20,)),), {"x": (2**20,)}
    makers = [Contents(ports).make, Calls({}, Interface(ports, ()), 0).make]
    for make, number in [(makers[0], 0), *((makers[1], content) for content in range(CONTENTS))]:
        tracemalloc.start()
        values = make(shapes, number)["x"]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (values.dtype, values.shape) == (np.dtype(dtype), (2**20,))
        assert peak < (1.5 if dtype != "bool" else 6) * values.nbytes


def test_sizes_that_nobody_could_mean_are_refused():
    contents = Contents((Port("x", "float32", (2**20, 2**20)),))
    with pytest.raises(DeclarationError, match="the inputs have 1,099,511,627,776 elements, more than the 33,554,432"):
        contents.make({"x": (2**20, 2**20)}, 0)


def test_types_that_cannot_be_made_up_are_refused():
    model = onnx.parser.parse_model(HEAD + "main (string[2] x) => (string[2] y) { y = Identity(x) }")
    with pytest.raises(DeclarationError) as caught:
        find_contents(Session(model.SerializeToString()), read_interface(model).inputs, 0)
    assert str(caught.value) == "input `x` is string, so that no values can be made up for it"


def test_an_axis_may_be_called_by_a_word_of_python():
    """Nobody who names axes in a file asks Python first."""
    axes = axes_by_input([Port("x", "float32", ("class", "max", "batch size", "n + 1", None))])["x"]
    assert list(map(str, axes)) == ["class_", "max_", "batch_size", "n + 1", "x_dim4"]


def test_two_labels_are_two_dims_however_they_are_cleaned():
    ports = [Port("x", "float32", ("a b", "a_b", None)), Port("y", "float32", ("a.b", "x_dim2", "a b", "a_b + 1"))]
    axes = {name: list(map(str, row)) for name, row in axes_by_input(ports).items()}
    assert axes == {"x": ["a_b_", "a_b", "x_dim2_"], "y": ["a_b__", "x_dim2", "a_b_", "a_b + 1"]}
