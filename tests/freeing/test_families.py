"""Axes as attributes or inputs, the letters of an Einsum, and shapes that broadcast."""

import onnx_ir as ir
import pytest

from anyshape.freeing.families import broadcast, einsum_terms
from anyshape.sizes.expressions import dim_symbol, number

B, S = dim_symbol("batch"), dim_symbol("seq")


@pytest.mark.parametrize(
    ("shapes", "together"),
    [
        ([(B, number(3)), (number(1), number(3))], (B, number(3))),
        ([(number(4),), (B, number(1))], (B, number(4))),
        ([(number(5),), (B, S)], (B, S)),
        ([(), (number(2),)], (number(2),)),
        ([], ()),
    ],
)
def test_shapes_together(shapes, together):
    assert broadcast(shapes) == together


def einsum(equation, operands):
    return ir.node("Einsum", [ir.Value(name=f"i{k}") for k in range(operands)], {"equation": equation})


def test_the_letters_of_an_einsum():
    assert einsum_terms(einsum("b i, i j -> b j", 2)) == ["bi", "ij", "bj"]
    assert einsum_terms(einsum("bi,ij", 2)) is None  # the result is not written down
    assert einsum_terms(einsum("...i,ij->...j", 2)) is None
    assert einsum_terms(einsum("bi->b", 2)) is None
