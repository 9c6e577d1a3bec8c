"""The user's line from which the first wrong result of a file comes."""

from __future__ import annotations

import inspect
from pathlib import Path

import onnx
import onnx.helper
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.model import oracle as references
from anyshape.model.request import understand
from anyshape.onnxfile.interface import read_interface
from anyshape.results.verification import Failure
from anyshape.runtime.session import Session
from anyshape.verification.first_wrong_node import WrongNode, first_difference
from anyshape.verification.model_reference import checker_beside_model


class Steps(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.abs()
        y = y.sqrt()
        return y.exp()


LINE_OF_SQRT = inspect.getsourcelines(Steps.forward)[1] + 2


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> onnx.ModelProto:
    path = tmp_path_factory.mktemp("steps") / "model.onnx"
    anyshape.export(Steps(), torch.randn(3), path, dims={"x": "n"}, quick=True)
    return onnx.load(path)


def changed(model: onnx.ModelProto, operator: str, *more: str) -> onnx.ModelProto:
    """Another operator in the place of Sqrt, with further inputs."""
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    node = next(node for node in twin.graph.node if node.op_type == "Sqrt")
    node.op_type = operator
    node.input.extend(more)
    return twin


def found(proto: onnx.ModelProto, folder: Path) -> WrongNode | None:
    onnx.save(proto, folder / "changed.onnx")
    request = understand(Steps(), torch.randn(3), None, dims={"x": "n"}, sizes=None, make_inputs=None)
    oracle = references.from_example(request.target, request.signature, request.spec, seed=0)
    checker = checker_beside_model(Session(folder / "changed.onnx"), read_interface(proto), oracle, ["x"])
    failure = checker.judge(checker.reference.run({"n": 4}))
    assert isinstance(failure, Failure)
    return first_difference(proto, checker, failure)


def test_a_wrong_value_is_found_at_its_line_and_not_where_it_is_seen(model: onnx.ModelProto, tmp_path: Path) -> None:
    place = found(changed(model, "Neg"), tmp_path)
    assert place is not None
    assert place.span is not None
    assert (place.operator, place.trouble, place.span.line) == ("Neg", "differs", LINE_OF_SQRT)
    assert str(place) == f"first node that differs: `{place.node}` (Neg)"


def test_a_node_that_the_runtime_cannot_run_is_found_by_bisection(model: onnx.ModelProto, tmp_path: Path) -> None:
    proto = changed(model, "Gather", "places")
    proto.graph.initializer.append(onnx.helper.make_tensor("places", onnx.TensorProto.INT64, [1], [99]))
    place = found(proto, tmp_path)
    assert place is not None
    assert place.span is not None
    assert (place.operator, place.trouble, place.span.line) == ("Gather", "fails", LINE_OF_SQRT)
