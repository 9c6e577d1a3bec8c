"""The words of translations: sizes, axes and numbers as they are read from values of a graph."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import onnxruntime
import onnxscript
import pytest
import torch
from onnxscript import opset18
from torch.onnx._internal.exporter._building import OpRecorder

from anyshape.conversion.operators.onnx_words import (
    FLOAT,
    for_each_axis,
    from_front,
    is_size_of,
    op,
    rank,
    scan,
    static_size,
    torchs_translation,
)


def _value(*shape: Any) -> ir.Value:
    return ir.Value(name="x", type=ir.TensorType(FLOAT), shape=ir.Shape(shape))


def test_sizes_of_a_value() -> None:
    x = _value("n", 3)
    assert rank(x) == 2
    assert [static_size(x, axis) for axis in (0, 1)] == [None, 3]
    assert [from_front(axis, x) for axis in (-1, 0)] == [1, 0]
    assert from_front(-1, _value()) == 0


def test_one_number_may_stand_for_every_axis() -> None:
    assert for_each_axis(2, 3) == [2, 2, 2]
    assert for_each_axis([2], 2) == [2, 2]
    assert for_each_axis((2, 1), 2) == [2, 1]


def test_a_size_is_known_by_its_shape_node() -> None:
    x = _value("n", 3)
    shape = ir.Node("", "Shape", [x], {"start": ir.AttrInt64("start", 0), "end": ir.AttrInt64("end", 1)})
    size = ir.Node("", "Squeeze", [shape.outputs[0]]).outputs[0]
    assert is_size_of(size, x, 0)
    assert not is_size_of(size, x, 1)
    assert not is_size_of(size, _value("n", 3), 0)
    assert is_size_of(3, x, 1)
    assert not is_size_of(3, x, 0)


def test_a_scan_keeps_its_states_and_stacks_its_outputs() -> None:
    begin, steps = _value(), ir.Value(name="steps", type=ir.TensorType(FLOAT), shape=ir.Shape(["n"]))
    begin.name = "begin"
    inputs = [ir.Value(name=name, type=ir.TensorType(FLOAT)) for name in ("before", "now")]
    recorder = OpRecorder(opset18, {})
    with onnxscript.evaluator.default_as(recorder):
        last, sums = scan([begin], [steps], inputs, lambda before, now: [total := op.Add(before, now), op.Neg(total)])
    (node,) = recorder.nodes
    assert node.op_type == "Scan"
    last.name, sums.name = "last", "sums"
    for value, shape in ((last, []), (sums, ["n"])):
        value.type, value.shape = ir.TensorType(FLOAT), ir.Shape(shape)
    graph = ir.Graph([begin, steps], [last, sums], nodes=[node], opset_imports={"": 18}, name="main")
    model = ir.serde.serialize_model(ir.Model(graph, ir_version=10))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    given = {"begin": torch.tensor(1.0).numpy(), "steps": torch.tensor([1.0, 2.0, 3.0]).numpy()}
    found = session.run(None, given)
    assert found[0] == 7
    assert found[1].tolist() == [-2, -4, -7]


def test_torchs_own_translations_are_found_by_their_places() -> None:
    assert torchs_translation("core.aten_histc").__name__ == "aten_histc"
    with pytest.raises(AttributeError):
        torchs_translation("core.aten_nothing")
