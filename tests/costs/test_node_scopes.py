"""Where nodes stand in the model, by whatever their exporter left."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from anyshape.costs.node_scopes import module_parts, scopes_of, source_of


def _node(name: str = "", weight: str = "", **metadata: str) -> ir.Node:
    inputs = [ir.Value(name="x")]
    if weight:
        inputs.append(ir.Value(name=weight, const_value=ir.tensor(np.zeros(2, np.float32))))
    node = ir.node("MatMul", inputs, name=name)
    node.metadata_props.update({key.replace("__", "."): text for key, text in metadata.items()})
    return node


def test_a_number_belongs_to_its_list() -> None:
    assert module_parts("encoder.layer.0.attention.self") == ("encoder", "layer.0", "attention", "self")
    assert module_parts("blocks.3.1.conv") == ("blocks.3.1", "conv")
    assert module_parts("") == ()


def test_metadata_of_ours_and_of_torch_is_read() -> None:
    nodes = [_node(anyshape__scope="net.layer.1"), _node(pkg__torch__onnx__name_scopes="['', 'net', 'net.head', 'mm']")]
    assert scopes_of(nodes) == [("net", "layer.1"), ("net", "head")]


def test_names_with_slashes_are_paths() -> None:
    assert scopes_of([_node("/encoder/layer.0/MatMul_1"), _node("/Add")]) == [("encoder", "layer.0"), ()]


def test_weights_tell_where_nothing_else_does_and_neighbours_share() -> None:
    nodes = [_node(), _node(weight="net.a.weight"), _node("x1"), _node(weight="net.b.weight"), _node()]
    assert scopes_of(nodes) == [(), ("net", "a"), ("net",), ("net", "b"), ()]


def test_the_line_is_told_without_its_function() -> None:
    assert source_of(_node(anyshape__source="model.py:31 in Net.forward")) == "model.py:31"
    assert source_of(_node()) is None
