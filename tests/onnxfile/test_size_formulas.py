"""Values of a file are computed at many sizes at once, as far as sizes alone decide them."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

from anyshape.onnxfile.size_formulas import SizeFormulas

TEXT = """<ir_version: 10, opset_import: ["": 20]> main (float[n, m] x) => (float[n, m] y) {
  shape = Shape (x)
  first = Constant <value_int: int = 0> ()
  n = Gather (shape, first)
  nine = Constant <value_int: int = 9> ()
  is_long = Greater (n, nine)
  low = Constant <value_float: float = 0.1> ()
  high = Constant <value_float: float = 7.5> ()
  end = Where (is_long, high, low)
  size = Size (x)
  half = Div (size, nine)
  y = Min (x, end)
}"""


@pytest.fixture
def values() -> dict[str | None, ir.Value]:
    graph = ir.from_proto(onnx.parser.parse_model(TEXT)).graph
    return {value.name: value for node in graph for value in node.outputs}


FORMULAS = SizeFormulas({"n": np.asarray([2, 9, 10]), "m": np.asarray([5, 6, 7])})


def test_what_sizes_decide_has_a_row_for_each_of_them(values) -> None:
    assert FORMULAS.numbers_of(values["shape"]).tolist() == [[2, 5], [9, 6], [10, 7]]
    assert FORMULAS.numbers_of(values["is_long"]).ravel().tolist() == [False, False, True]
    assert FORMULAS.numbers_of(values["half"]).ravel().tolist() == [1, 6, 7]


def test_fractions_are_the_decimal_numbers_that_were_written(values) -> None:
    assert FORMULAS.numbers_of(values["end"]).ravel().tolist() == [0.1, 0.1, 7.5]


def test_what_depends_on_values_is_not_known(values) -> None:
    assert FORMULAS.numbers_of(values["y"]) is None
    assert FORMULAS.numbers_of(None) is None
