"""The whole account of a file: what is held, what is not, and why."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from anyshape.costs.account import costs_of
from anyshape.costs.file_costs import FileCosts
from anyshape.errors import AnyshapeError
from tests.costs.files import write

CHAIN = "(float[batch, seq] x) => (float y) { h = Relu (x) t = Transpose (h) y = MatMul (h, t) }"


def _states(costs: FileCosts) -> dict[str, str]:
    return {value.name: value.state for value in costs.values}


def _texts(costs: FileCosts, name: str) -> list[str]:
    value = next(value for value in costs.values if value.name == name)
    return [costs.expressions[place].text for place in value.shape or ()]


def test_every_value_has_formulas_that_real_runs_confirm(tmp_path: Path) -> None:
    costs = costs_of(write(tmp_path, CHAIN), start={"batch": 4, "seq": 10})
    assert _states(costs) == dict.fromkeys("xhty", "held")
    assert (_texts(costs, "t"), _texts(costs, "y")) == (["seq", "batch"], ["batch", "batch"])
    assert len(costs.held_at) == 3
    assert [(dim.name, dim.first, dim.last, dim.start) for dim in costs.dims] == [
        ("batch", 1, None, 4),
        ("seq", 1, None, 10),
    ]
    assert costs.growth.flops == "O(batch^2*seq)"
    assert costs.growth.flops_formula == "2*batch**2*seq + batch*seq"
    assert costs.memory({"batch": 4, "seq": 10}) == 4 * (3 * 40 + 16)  # x, h and t, which the last node reads, and y
    assert costs.flops({"batch": 4, "seq": 10}) == 2 * 16 * 10 + 40


def test_without_runs_formulas_are_not_held(tmp_path: Path) -> None:
    costs = costs_of(write(tmp_path, CHAIN), is_run=False)
    assert (_states(costs), costs.held_at) == (dict.fromkeys("xhty", "not run"), ())


def test_what_the_data_decide_is_unknown_and_so_is_all_behind_it(tmp_path: Path) -> None:
    text = "(float[a, b] x) => (float y) { n = NonZero (x) t = Transpose (n) f = Cast <to = 1> (t) y = Relu (x) }"
    costs = costs_of(write(tmp_path, text))
    assert _states(costs) == {"x": "held", "n": "unknown", "t": "unknown", "f": "unknown", "y": "held"}
    assert costs.growth.memory is None


def test_a_size_from_an_input_is_never_read_off_runs(tmp_path: Path) -> None:
    text = "(float[a, b] x, int64[1] n) => (float y) { o = Add (n, n) y = ConstantOfShape (o) }"
    assert _states(costs_of(write(tmp_path, text)))["y"] == "unknown"


def test_what_no_rule_knows_is_read_off_runs(tmp_path: Path) -> None:
    text = (
        "(float[a, b] x) => (float y) { i = Constant <value = int64 {1}> () q = SplitToSequence <axis = 1> (x) "
        "e = SequenceAt (q, i) y = ConcatFromSequence <axis = 1> (q) }"
    )
    costs = costs_of(write(tmp_path, text))
    assert (_states(costs)["y"], _texts(costs, "y")) == ("held", ["a", "b"])
    assert "the sizes of its results were read off runs" in {node.mark for node in costs.nodes}


def test_functions_are_looked_into(tmp_path: Path) -> None:
    function = '<domain: "local", opset_import: ["": 20]> twice (v) => (w) { w = Add (v, v) }'
    text = f"{CHAIN.replace('Relu', 'local.twice')} {function}"
    costs = costs_of(write(tmp_path, text))
    assert [node.op for node in costs.nodes] == ["Add", "Transpose", "MatMul"]
    assert set(_states(costs).values()) == {"held"}


def test_a_branch_by_size_is_a_choice_of_formulas(tmp_path: Path) -> None:
    text = (
        "(float[a, b] x) => (float y) { s = Shape <start = 1> (x) n = Constant <value = int64[1] {4}> () "
        "g = Greater (s, n) q = Squeeze (g) y = If (q) "
        "<then_branch = t () => (float u) { u = Concat <axis = 1> (x, x) }, "
        "else_branch = e () => (float v) { v = Exp (x) }> }"
    )
    costs = costs_of(write(tmp_path, text))
    assert _texts(costs, "y") == ["a", "2*b if b > 4 else b"]
    assert costs.nodes[-1].captured == (0,)
    assert costs.expressions[costs.nodes[-1].flops or 0].text == "0 if b > 4 else a*b"


def test_an_operator_from_elsewhere_leaves_the_rest_told(tmp_path: Path) -> None:
    costs = costs_of(write(tmp_path, "(float[a, b] x) => (float y) { h = Relu (x) y = local.Own (h) }"))
    assert _states(costs) == {"x": "not run", "h": "not run", "y": "unknown"}
    assert [node.op for node in costs.nodes] == ["Relu", "local::Own"]


def test_a_static_file_has_numbers(tmp_path: Path) -> None:
    costs = costs_of(write(tmp_path, "(float[2, 3] x) => (float y) { y = Relu (x) }"))
    assert (_states(costs), costs.held_at, costs.dims) == ({"x": "held", "y": "held"}, ({},), ())
    assert costs.memory({}) == 48
    assert costs.growth.memory == "O(1)"


def test_the_document_is_plain_and_the_same_every_time(tmp_path: Path) -> None:
    path = write(tmp_path, CHAIN)
    document = costs_of(path).to_dict()
    assert json.dumps(document) == json.dumps(costs_of(path).to_dict())
    assert sorted(document) == [
        "dims", "expressions", "growth", "held_at", "inputs", "nodes", "outputs", "relations", "values", "weights",
    ]  # fmt: skip
    assert document["values"][0] == {"name": "x", "type": "float32", "item": 4, "shape": [0, 1], "state": "held"}
    assert sorted(document["nodes"][0]) == [
        "flops", "inputs", "mark", "moved", "name", "op", "outputs", "scope", "source",
    ]  # fmt: skip
    assert (document["inputs"], document["outputs"]) == ([0], [3])


def test_a_file_that_is_none_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "no.onnx").write_bytes(b"nothing")
    with pytest.raises(AnyshapeError, match="is not an ONNX file"):
        costs_of(tmp_path / "no.onnx")


def test_weights_are_counted_apart(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "(float[a, 2] x) => (float y) { w = Constant <value = float[2, 3] {1,2,3,4,5,6}> () y = MatMul (x, w) }",
    )
    costs = costs_of(path)
    assert (costs.weights, costs.nodes[0].inputs, costs.nodes[0].weights) == (24, (0, -1), ("w float32[2, 3]",))
    assert onnx.load(path).graph.node[0].op_type == "Constant"  # the file is as it was
