"""Weights inside of a file, written without protobuf's copies: what is read back is what protobuf writes."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.onnxfile import saving


def _model(weights: dict[str, ir.TensorProtocol]) -> ir.Model:
    values = [ir.Value(name=name, const_value=tensor) for name, tensor in weights.items()]
    nodes = [ir.node("Identity", [value], outputs=[ir.Value(name=f"{value.name}_out")]) for value in values]
    outputs = [node.outputs[0] for node in nodes]
    graph = ir.Graph([], outputs, nodes=nodes, initializers=values, name="weights", opset_imports={"": 20})
    return ir.Model(graph, ir_version=10, metadata_props={"who": "anyshape"})


def _sorted(proto: onnx.ModelProto) -> onnx.ModelProto:
    initializers = sorted(proto.graph.initializer, key=lambda one: one.name)
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(initializers)
    return proto


KINDS = {
    "float32": np.linspace(0, 1, 600, dtype=np.float32).reshape(20, 30),
    "float16": np.linspace(0, 1, 1000, dtype=np.float16),
    "bfloat16": np.linspace(0, 1, 1000).astype(ml_dtypes.bfloat16),
    "int4": np.arange(-8, 7).repeat(200).astype(ml_dtypes.int4),
    "bool": np.arange(3000) % 3 == 0,
    "small": np.zeros(3, np.int64),
    "no axes": np.array(1.5),
    "empty": np.zeros((0, 4), np.float32),
    "transposed": np.arange(900.0).reshape(30, 30).T,
}


@pytest.mark.parametrize("chosen", [*([name] for name in KINDS), list(KINDS)], ids=str)
def test_a_file_is_what_protobuf_writes(chosen: list[str], tmp_path: Path) -> None:
    model = _model({name: ir.tensor(KINDS[name], doc_string=f"about {name}") for name in chosen})
    ir.save(model, tmp_path / "protobuf.onnx")
    saving.save_inline(model, tmp_path / "ours.onnx")
    assert _sorted(onnx.load(tmp_path / "ours.onnx")) == _sorted(onnx.load(tmp_path / "protobuf.onnx"))
    assert list(model.graph.initializers) == chosen
    assert all(model.graph.initializers[name].const_value.numpy().shape == KINDS[name].shape for name in chosen)


def test_texts_and_weights_of_another_file_stay_as_they_are(tmp_path: Path) -> None:
    KINDS["float32"].tofile(tmp_path / "weights.data")
    elsewhere = ir.ExternalTensor(
        "weights.data", 0, 2400, ir.DataType.FLOAT, shape=ir.Shape([600]), name="elsewhere", base_dir=tmp_path
    )
    texts = ir.StringTensor([b"word"] * 2000, shape=ir.Shape([2000]), name="texts")
    model = _model({"elsewhere": elsewhere, "texts": texts, "inside": ir.tensor(KINDS["float32"])})
    ir.save(model, tmp_path / "protobuf.onnx")
    saving.save_inline(model, tmp_path / "ours.onnx")
    kept = [onnx.load(tmp_path / name, load_external_data=False) for name in ("ours.onnx", "protobuf.onnx")]
    assert _sorted(kept[0]) == _sorted(kept[1])


@given(st.lists(st.integers(1020, 70_000), min_size=1, max_size=4))
def test_any_lengths(lengths: list[int]) -> None:
    """Lengths of fields are written in one byte or in several."""
    import tempfile

    weights = {f"w{place}": np.arange(length, dtype=np.uint8) for place, length in enumerate(lengths)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        saving.save_inline(_model({name: ir.tensor(value) for name, value in weights.items()}), path)
        read = {one.name: onnx.numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}
    assert read.keys() == weights.keys()
    assert all((read[name] == weights[name]).all() for name in weights)
