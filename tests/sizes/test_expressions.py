"""Sizes as expressions."""

import onnx_ir as ir
import pytest
import sympy

from anyshape.errors import AnyshapeError
from anyshape.sizes.expressions import dim_symbol, evaluated, from_dim, spelled

S = dim_symbol("seq")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (S, "seq"),
        (2 * S + 1, "2*seq + 1"),
        (sympy.floor(S / 2) + 1, "seq//2 + 1"),
        (2 * sympy.floor((S + 1) / 2), "2*((seq + 1)//2)"),
    ],
)
def test_sizes_are_spelled_as_readers_write_them(size, text):
    assert spelled(size) == text
    assert eval(text, {"seq": 7}) == evaluated(size, {S: 7})


def test_strides_on_top_of_each_other_stay_short():
    size = from_dim(ir.SymbolicDim("floor((floor((seq - 1)/2) + 1 - 1)/2) + 1"))
    assert spelled(size) == "(seq - 1)//4 + 1"


def test_an_unknown_symbol_has_no_number():
    assert evaluated(S + dim_symbol("other"), {S: 3}) is None


def test_an_endless_expression_is_refused():
    with pytest.raises(AnyshapeError, match="too long"):
        from_dim(ir.SymbolicDim("+".join(f"a{k}" for k in range(2000))))
