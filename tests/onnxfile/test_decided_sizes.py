"""Where comparisons of sizes in a file come out otherwise."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from anyshape.onnxfile.decided_sizes import decided_sizes
from anyshape.sizes.notation import SizeRange

HEAD = """
<ir_version: 9, opset_import: ["" : 20]>
main (float[a, 4] x, float[b] y) => (bool[k] out) {
    of_x = Shape <start = 0, end = 1> (x)
    of_y = Shape (y)
    two = Constant <value_ints = [2]> ()
    three = Constant <value_ints = [3]> ()
    number = Constant <value_ints = [4000]> ()
"""
OPEN = {"a": SizeRange(1), "b": SizeRange(1)}
TRACED = {"a": 3, "b": 5}


def found(nodes: str, ranges: dict[str, SizeRange] | None = None) -> list[dict[str, int]]:
    model = ir.from_proto(onnx.parser.parse_model(HEAD + nodes + "}"))
    return [dict(sizes) for sizes in decided_sizes(model, ranges or OPEN, TRACED)]


@pytest.mark.parametrize(
    ("nodes", "holds"),
    [
        ("double = Mul (of_x, two) more = Add (double, three) out = Equal (of_y, more)", lambda a, b: b == 2 * a + 3),
        ("product = Mul (of_x, of_y) n = Add (three, three) m = Mul (n, two) l = Mul (m, two) out = Equal (product, l)",
         lambda a, b: a * b == 24),
        ("out = Greater (of_x, number)", lambda a, b: a > 4000),
        ("all = Size (x) out = Less (all, number)", lambda a, b: 4 * a < 4000),
        ("bits = BitwiseAnd (of_y, two) out = Equal (bits, two)", lambda a, b: b & 2 == 2),
        ("one = Less (of_x, two) other = Greater (of_y, number) out = And (one, other)",
         lambda a, b: a < 2 and b > 4000),
    ],
)  # fmt: skip
def test_both_answers_are_run(nodes: str, holds: object) -> None:
    assert callable(holds)
    sizes = found(nodes)
    assert any(holds(**one) != holds(**TRACED) for one in sizes)
    assert len(sizes) <= 6


def test_what_no_declared_size_decides_otherwise_is_not_run() -> None:
    minus = "minus = Neg (two) out = Equal (of_x, minus)"
    assert found(minus) == []
    closed = {"a": SizeRange(1, 30), "b": SizeRange(1)}
    assert found("out = Greater (of_x, number)", closed) == []


def test_what_values_decide_is_left_alone() -> None:
    assert found("zero = Sub (two, two) none = Cast <to = 1> (zero) out = Greater (y, none)") == []
