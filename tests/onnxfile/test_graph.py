"""The toolkit for graphs: constants, new nodes, replacements, and what depends on what."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

from anyshape.onnxfile.graph import (
    Dependencies,
    attribute,
    captured,
    constant,
    constant_node,
    constant_of,
    every_node,
    graphs_in,
    initializer,
    insert,
    integers_in,
    is_op,
    is_standard,
    maker,
    name_of,
    names_in,
    nodes_of,
    only_user,
    proto_graphs,
    prune,
    reads,
    replace,
    whole_numbers,
)

TEXT = """<ir_version: 10, opset_import: ["": 18]>
main (float[2, 3] x, bool c) => (float[2, 3] y) <int64[2] axes = {0, 1}, float[3] table = {1, 2, 3}> {
    a = Relu(x)  b = Neg(a)  unused = Exp(x)
    d = If (c) <then_branch = t () => (float[2, 3] p) { p = Add(b, table) },
                else_branch = e () => (float[2, 3] q) { h = Sqrt(a) q = Identity(h) }>
    y = Transpose<perm = [0, 1]>(d)
}"""


@pytest.fixture
def model() -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(TEXT))


def node(model: ir.Model, operator: str) -> ir.Node:
    (found,) = every_node(model.graph, operator)
    return found


def test_both_names_of_the_standard_domain_count() -> None:
    assert all(is_op(ir.node("Relu", [], domain=domain), "Relu") for domain in ("", "ai.onnx"))
    assert not is_op(ir.node("Relu", [], domain="com.microsoft"), "Relu")
    assert not is_op(None, "Relu")
    assert is_standard(onnx.helper.make_node("Relu", [], []))


def test_nodes_are_found_with_and_without_the_graphs_inside(model: ir.Model) -> None:
    assert [one.op_type for one in nodes_of(model.graph, "Add", "Neg")] == ["Neg"]
    assert {one.op_type for one in every_node(model.graph, "Add", "Neg")} == {"Add", "Neg"}
    assert len(every_node(model.graph)) == 8
    assert [graph.name for graph in graphs_in(node(model, "If"))] == ["t", "e"]
    assert {graph.name for graph in proto_graphs(onnx.parser.parse_model(TEXT))} == {"main", "t", "e"}


def test_a_node_is_known_by_its_neighbours(model: ir.Model) -> None:
    relu, neg = node(model, "Relu"), node(model, "Neg")
    assert maker(neg.inputs[0], "Relu") is relu
    assert maker(neg.inputs[0], "Exp") is None
    assert only_user(relu.outputs[0], "Neg") is None  # a branch reads it, too
    assert only_user(node(model, "If").outputs[0], "Transpose") is node(model, "Transpose")
    assert attribute(node(model, "Transpose"), "perm") == (0, 1)
    assert attribute(relu, "perm", "none") == "none"
    assert name_of(ir.node("Relu", [], outputs=[ir.Value(name="result")])) == "result"


def test_short_constants_are_read(model: ir.Model) -> None:
    axes, table = model.graph.initializers["axes"], model.graph.initializers["table"]
    assert (whole_numbers(axes), whole_numbers(table), whole_numbers(None)) == ((0, 1), None, None)
    assert constant_of(table).tolist() == [1, 2, 3]
    assert integers_in(ir.tensor(np.arange(5)), 4) is None
    made = constant_node([4, -1], like=node(model, "Relu"))
    assert whole_numbers(made.outputs[0]) == (4, -1)


def test_one_constant_serves_all_that_ask_for_the_same(model: ir.Model) -> None:
    first, second, scalar = (constant(model.graph, numbers) for numbers in ([2, -1], (2, -1), 2))
    assert first is second is not scalar
    assert (first.name, scalar.name) == ("sizes_2_minus1", "size_2")
    stored = initializer(model.graph, "stored", np.zeros((2, 0), np.float32))
    assert model.graph.initializers["stored"] is stored
    assert {"stored", "sizes_2_minus1", "h", "q", "x"} <= names_in(model)


def test_a_new_node_stands_before_another_and_comes_from_its_line(model: ir.Model) -> None:
    neg = node(model, "Neg")
    neg.metadata_props["line"] = "net.py:3"
    value = insert(neg, "Abs", [neg.inputs[0]], axes=[2, "n"], like=neg.inputs[0])
    kinds = [one.op_type for one in model.graph]
    assert kinds.index("Abs") == kinds.index("Neg") - 1
    assert value.producer().metadata_props == {"line": "net.py:3"}
    assert value.shape == ir.Shape([2, "n"])


@pytest.mark.parametrize("keep_name", [False, True])
def test_what_is_returned_is_replaced_in_its_place(model: ir.Model, *, keep_name: bool) -> None:
    old = model.graph.outputs[0]
    new = insert(old.producer(), "Abs", [node(model, "Neg").outputs[0]])
    other = new.name
    replace(old, new, keep_name=keep_name)
    assert model.graph.outputs[0] is new
    assert new.name == ("y" if keep_name else other)


def test_what_nobody_reads_is_removed(model: ir.Model) -> None:
    prune(model.graph, model.graph)
    assert [one.op_type for one in model.graph] == ["Relu", "Neg", "If", "Transpose"]


def test_a_node_needs_what_its_graphs_capture(model: ir.Model) -> None:
    choice = node(model, "If")
    assert {value.name for value in reads(choice)} == {"c", "b", "table", "a"}
    assert [value.name for value in captured(graphs_in(choice)[1])] == ["a"]
    found = Dependencies(model.graph)
    assert found.needed(node(model, "Relu"), choice)
    assert not found.needed(node(model, "Exp"), choice)
    between = found.between([node(model, "Neg")], node(model, "Transpose"))
    assert [one.op_type for one in between] == ["Neg", "If"]
    outside = 1 << found.place[id(node(model, "Relu"))]
    assert [one.op_type for one in found.leading_to(choice.outputs, outside)] == ["Neg", "If"]
