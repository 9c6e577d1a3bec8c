"""Sizes of results as expressions."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.onnxfile.inferred_shapes import Inference
from anyshape.sizes.expressions import dim_symbol, from_ir

BATCH = dim_symbol("batch")


def _inferred(node: ir.Node, inference: Inference) -> tuple[object, ...] | None:
    inference.infer(node)
    return from_ir(node.outputs[0].shape)


def _value(*axes: int | str, dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Value:
    return ir.Value(name="x", shape=ir.Shape(list(axes)), type=ir.TensorType(dtype))


def test_a_known_operator_gives_shapes_and_types() -> None:
    node = ir.node("Transpose", [_value("batch", 3)])
    assert _inferred(node, Inference({"": 20}, ["batch"])) == (3, BATCH)
    assert node.outputs[0].dtype == ir.DataType.FLOAT


def test_an_unknown_operator_gives_nothing() -> None:
    assert _inferred(ir.node("Own", [_value("batch")], domain="mine"), Inference({"": 20}, ["batch"])) is None


def test_what_a_tensor_of_sizes_holds_is_told_and_asked() -> None:
    inference, sizes = Inference({"": 20}, ["batch"]), _value(2, dtype=ir.DataType.INT64)
    inference.tell(sizes, (BATCH, dim_symbol("batch") * 0 + 4))
    assert inference.numbers(sizes) == (BATCH, 4)
    assert _inferred(ir.node("Reshape", [_value("batch", 2, 2), sizes]), inference) == (BATCH, 4)


def test_a_size_that_nobody_knows_is_told_from_a_dim() -> None:
    inference = Inference({"": 20}, ["batch"])
    assert inference.is_unknown(inference.unknown())
    assert not inference.is_unknown(BATCH)
