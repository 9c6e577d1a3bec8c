"""What nodes compute, move and hold, counted by hand."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
import pytest

from anyshape.costs.account import costs_of
from anyshape.costs.file_costs import FileCosts
from anyshape.costs.node_work import item_bytes
from tests.costs.files import write

FLOPS = {
    "(float[a, b, 8] x, float[8, 5] w) => (float y) { y = MatMul (x, w) }": "80*a*b",
    "(float[a, 8] x, float[8, 5] w, float[5] c) => (float y) { y = Gemm (x, w, c) }": "85*a",
    "(float[a, 2, b, b] x, float[4, 2, 3, 3] w) => (float y) { y = Conv <pads = [1, 1, 1, 1]> (x, w) }": "144*a*b**2",
    "(float[a, 2, b, b] x, float[2, 4, 3, 3] w) => (float y) { y = ConvTranspose (x, w) }": "144*a*b**2",
    '(float[a, b] x, float[b, c] z) => (float y) { y = Einsum <equation = "ab,bc->ac"> (x, z) }': "2*a*b*c",
    "(float[b, a, 3] x, float[1, 4, 3] w, float[1, 4, 4] r) => (float y) "
    "{ y = RNN <hidden_size = 4> (x, w, r) }": "72*a*b",
    "(float[a, b] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }": "a*b",
    "(float[a, b] x, float[b] z) => (float y) { y = Add (x, z) }": "a*b",
    "(float[a, b] x) => (float y) { y = Transpose (x) }": "0",
    "(float[a, 2, b, b] x) => (float y) { y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x) }": "18*a*b**2",
    "(float[a, b] x) => (float y) { y = Softmax (x) }": "5*a*b",
}


def _flops(costs: FileCosts) -> str:
    (place,) = {node.flops for node in costs.nodes}
    assert place is not None
    return costs.expressions[place].text


@pytest.mark.parametrize("text", FLOPS)
def test_operations_are_counted(text: str, tmp_path: Path) -> None:
    assert _flops(costs_of(write(tmp_path, text), is_run=False)) == FLOPS[text]


def test_attention_counts_both_products_and_its_softmax(tmp_path: Path) -> None:
    text = "(float[a, 2, b, 8] q, float[a, 2, c, 8] k, float[a, 2, c, 8] v) => (float y) { y = Attention (q, k, v) }"
    costs = costs_of(write(tmp_path, text, 23), is_run=False)
    assert _flops(costs) == "74*a*b*c"  # for each of 2 heads: 2*8 + 2*8 + 5


def test_bytes_are_those_of_the_types(tmp_path: Path) -> None:
    assert [float(item_bytes(kind) or 0) for kind in (ir.DataType.INT4, ir.DataType.BOOL, ir.DataType.DOUBLE)] == [
        0.5,
        1,
        8,
    ]
    assert item_bytes(ir.DataType.STRING) is None
    costs = costs_of(write(tmp_path, "(float[a] x) => (bool y) { y = IsNaN (x) }"), is_run=False)
    assert [(value.type, value.item) for value in costs.values] == [("float32", 4), ("bool", 1)]
    assert costs.expressions[costs.nodes[0].moved or 0].text == "5*a"


def test_a_loop_takes_its_body_as_often_as_it_runs(tmp_path: Path) -> None:
    body = "f (int64 i, bool c, float[a] v) => (bool d, float[a] o) { d = Identity (c) e = Exp (v) o = Add (e, v) }"
    text = (
        "(float[a, b] x) => (float y) { s = Shape <start = 1> (x) n = Squeeze (s) "
        "o = Constant <value = int64[1] {1}> () "
        f"z = ReduceSum <keepdims = 0> (x, o) yes = Constant <value = bool {{1}}> () "
        f"y = Loop (n, yes, z) <body = {body}> }}"
    )
    costs = costs_of(write(tmp_path, text))
    loop = costs.nodes[-1]
    assert (loop.op, costs.expressions[loop.flops or 0].text) == ("Loop", "2*a*b")
    assert costs.expressions[loop.inner or 0].text == "8*a + 1"


def test_an_operator_without_a_rule_is_marked(tmp_path: Path) -> None:
    costs = costs_of(write(tmp_path, "(float[a, 8, 1] x) => (float y) { y = DFT (x) }"), is_run=False)
    assert [(node.flops, node.mark) for node in costs.nodes] == [(None, "its operations are not known")]
    assert (costs.growth.flops, costs.flops({"a": 3})) == (None, None)
    assert costs.growth.memory == "O(a)"
