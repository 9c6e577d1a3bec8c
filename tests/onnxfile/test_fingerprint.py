from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import anyshape
from anyshape.onnxfile.contradictions import CHANGED
from anyshape.onnxfile.fingerprint import fingerprint


def model(seed: int = 0) -> onnx.ModelProto:
    """With a weight that is sampled, a small one, and a branch."""
    generator = np.random.default_rng(seed)
    large = numpy_helper.from_array(generator.standard_normal((4, 3000), np.float32), "large")
    small = helper.make_tensor("small", TensorProto.FLOAT, (2,), [1.0, 2.0])
    branches = {
        name: helper.make_graph([helper.make_node(kind, ["x"], [f"{name} y"])], name, [], [_port(f"{name} y")])
        for name, kind in (("then_branch", "Relu"), ("else_branch", "Neg"))
    }
    nodes = [
        helper.make_node("Constant", [], ["so"], value=helper.make_tensor("", TensorProto.BOOL, (), [True])),
        helper.make_node("If", ["so"], ["a"], name="choose", **branches),
        helper.make_node("MatMul", ["a", "large"], ["b"]),
        helper.make_node("Cast", ["b"], ["y"], to=TensorProto.DOUBLE),
    ]
    graph = helper.make_graph(nodes, "g", [_port("x")], [_port("y", TensorProto.DOUBLE)], [large, small])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def _port(name: str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, ["n", "m"])


def _resave(proto: onnx.ModelProto, **options) -> Callable[[Path], onnx.ModelProto]:
    def saved(folder: Path) -> onnx.ModelProto:
        onnx.save(proto, folder / "m.onnx", **options)
        return onnx.load(folder / "m.onnx", load_external_data=False)

    return saved


def _told(proto: onnx.ModelProto) -> onnx.ModelProto:
    """By other names of nodes, labels and remarks."""
    proto.metadata_props.add(key="who", value="somebody")
    proto.producer_name, proto.doc_string, proto.graph.name = "a tool", "better", "h"
    proto.graph.node[1].name = "decide"
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    return onnx.shape_inference.infer_shapes(proto)


def _by_one_one(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The small weight, number for number as raw bytes."""
    proto.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.array([1, 2], np.float32), "small"))
    return proto


@pytest.mark.parametrize(
    "other",
    [
        _resave(model()), _resave(model(), save_as_external_data=True, size_threshold=0),
        lambda _: _told(model()), lambda _: _by_one_one(model()),
    ],
    ids=["saved again", "weights beside it", "told otherwise", "raw bytes"],
)  # fmt: skip
def test_a_graph_is_known_again(other: Callable[[Path], onnx.ModelProto], tmp_path: Path) -> None:
    assert fingerprint(other(tmp_path), tmp_path) == fingerprint(model(), tmp_path)


def _changed(change: Callable[[onnx.GraphProto], object]) -> onnx.ModelProto:
    proto = model()
    change(proto.graph)
    return proto


FALSE = helper.make_tensor("", TensorProto.BOOL, (), [0])
CHANGES: dict[str, Callable[[onnx.GraphProto], object]] = {
    "an operator": lambda graph: setattr(graph.node[3], "op_type", "Identity"),
    "an attribute": lambda graph: setattr(graph.node[3].attribute[0], "i", TensorProto.FLOAT),
    "a constant": lambda graph: graph.node[0].attribute[0].t.CopyFrom(FALSE),
    "a branch": lambda graph: setattr(graph.node[1].attribute[0].g.node[0], "op_type", "Abs"),
    "branches swapped": lambda graph: [
        setattr(one, "name", "then_branch" if one.name == "else_branch" else "else_branch")
        for one in graph.node[1].attribute
    ],
    "edges": lambda graph: graph.node[2].input.__setitem__(0, "x"),
    "an output": lambda graph: setattr(graph.output[0], "name", "b"),
    "a small weight": lambda graph: graph.initializer[1].float_data.__setitem__(1, 3.0),
    "the end of a large one": lambda graph: setattr(
        graph.initializer[0], "raw_data", graph.initializer[0].raw_data[:-4] + b"abcd"
    ),
    "the shape of a weight": lambda graph: graph.initializer[0].dims.__setitem__(slice(None), [3000, 4]),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_another_graph_is_told(change: Callable[[onnx.GraphProto], object], tmp_path: Path) -> None:
    assert fingerprint(_changed(change), tmp_path) != fingerprint(model(), tmp_path)


def test_other_weights_and_another_opset_are_told(tmp_path: Path) -> None:
    other = model()
    other.opset_import[0].version = 19
    assert len({fingerprint(one, tmp_path) for one in (model(), model(seed=1), other)}) == 3


# ---- in a contract


@pytest.fixture
def linear_file(tmp_path: Path) -> Path:
    anyshape.export(
        torch.nn.Linear(4, 2), torch.ones(3, 4), tmp_path / "linear.onnx", dims={"input": "batch 4"}, quick=True
    )
    return tmp_path / "linear.onnx"


def test_what_another_tool_has_changed_is_told(linear_file: Path) -> None:
    proto = onnx.load(linear_file)
    assert anyshape.inspect(linear_file).lies == ()
    kept = numpy_helper.to_array(proto.graph.initializer[0])
    proto.graph.initializer[0].CopyFrom(
        numpy_helper.from_array(kept * np.float32(1.01), proto.graph.initializer[0].name)
    )
    onnx.save(proto, linear_file)
    assert anyshape.inspect(linear_file).lies == (CHANGED,)
    checked = anyshape.check(linear_file, quick=True)
    assert f"the file's own contract {CHANGED}" in checked.notes
    assert anyshape.load(linear_file) is not None


def test_a_weight_that_cannot_be_read_is_another_one(linear_file: Path) -> None:
    proto = onnx.load(linear_file)
    weight = proto.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.float_data.extend([1.0])
    onnx.save(proto, linear_file)
    assert CHANGED in anyshape.inspect(linear_file).lies
