"""Sizes at which the digits of a formula decide."""

from __future__ import annotations

import math

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

from anyshape.onnxfile.rounded_sizes import rounded_sizes
from anyshape.sizes.notation import SizeRange, Sizes


def found(body: str, *, hi: int = 5000, given: str = "float[n] x", dims: str = "n") -> list[Sizes]:
    text = f'<ir_version: 9, opset_import: ["" : 18]> main ({given}) => (int64 y) {{ {body} }}'
    model = ir.from_proto(onnx.parser.parse_model(text))
    ranges = {dim: SizeRange(1, hi) for dim in dims.split()}
    return rounded_sizes(model, ranges, dict.fromkeys(ranges, 7), seed=0)


SIZE = "s = Shape (x) d = Cast <to = 11> (s)"


def constant(name: str, value: float, kind: str = "double") -> str:
    return f"{name} = Constant <value: tensor = {kind} {{{value}}}> ()"


def test_a_power_at_which_the_logarithm_falls_short() -> None:
    sizes = found(f"{SIZE} {constant('b', math.log(3))} l = Log (d) q = Div (l, b) f = Floor (q) y = Cast <to = 7> (f)")
    assert {"n": 243} in sizes
    assert all(3 ** round(math.log(one["n"], 3)) == one["n"] for one in sizes)


def test_a_factor_whose_product_is_nearly_whole() -> None:
    sizes = found(f"{SIZE} {constant('k', 0.7)} p = Mul (d, k) f = Floor (p) y = Cast <to = 7> (f)")
    assert sizes
    assert all(math.floor(np.float32(one["n"]) * np.float32(0.7)) != math.floor(one["n"] * 0.7) for one in sizes)


@pytest.mark.parametrize(
    "body",
    [
        f"{SIZE} {constant('k', 0.5)} p = Mul (d, k) f = Floor (p) y = Cast <to = 7> (f)",  # exact in every type
        "t = Floor (x) y = Cast <to = 7> (t)",  # of values
        "y = Shape (x)",
    ],
)
def test_nothing_to_dispute(body: str) -> None:
    assert found(body) == []


def test_the_length_of_a_range() -> None:
    ends = f"{constant('z', 0, 'float')} {constant('o', 1, 'float')}"
    sizes = found(
        f"{SIZE} e = Squeeze (s) f = Cast <to = 1> (e) {ends} w = Div (o, f) r = Range (z, o, w) y = Shape (r)"
    )
    assert sizes
    for one in sizes:
        step = np.float32(1) / np.float32(one["n"])
        lengths = {math.ceil(np.float32(1) / step), math.ceil(1 / (1 / one["n"])), one["n"]}
        assert len(lengths) > 1 or one["n"] > 1000


def test_pairs_of_sizes_at_which_a_resize_takes_other_pixels() -> None:
    body = (
        "a = Shape <start = 0, end = 2> (x) b = Shape (z) c = Concat <axis = 0> (a, b) "
        'r = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric"> (x, , , c) y = Size (r)'
    )
    sizes = found(body, hi=100, given="float[1, 2, n] x, float[m] z", dims="n m")
    assert any(_is_other_pixel_in_float32(**one) for one in sizes)
    assert {"n": 28, "m": 7} not in sizes  # a whole factor


def _is_other_pixel_in_float32(n: int, m: int) -> bool:
    taken = np.floor(np.arange(m, dtype=np.float32) / (np.float32(m) / np.float32(n)))
    return bool((taken != np.arange(m) * n // m).any())


def test_the_size_that_a_factor_makes() -> None:
    factors = "k = Constant <value: tensor = float[3] {1, 1, 1.3}> ()"
    sizes = found(f"{factors} r = Resize (x, , k) y = Size (r)", given="float[1, 2, n] x")
    assert {"n": 90} in sizes  # 117 in double, 116 in float32


def test_large_formulas_of_nothing_but_values_cost_nothing() -> None:
    assert found("y = Cast <to = 7> (x)", given="float x", dims="") == []
