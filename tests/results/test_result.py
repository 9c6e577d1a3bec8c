"""A result is a value with a model in it: it is saved, run and asked like torch's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import TensorProto, helper

from anyshape.onnxfile.interface import Port
from anyshape.results.result import ExportError, Result


def _doubled() -> Result:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", [x], [y])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    ports = (Port("x", "float32", ("n",)),), (Port("y", "float32", ("n",)),)
    return Result("checked", *ports, _model=ir.from_proto(proto))


def test_it_runs_on_tensors_in_order_or_by_name() -> None:
    result = _doubled()
    assert torch.equal(torch.as_tensor(result(torch.ones(3))[0]), torch.full((3,), 2.0))
    assert torch.equal(torch.as_tensor(result(x=torch.ones(2))[0]), torch.full((2,), 2.0))


def test_it_is_saved_as_it_was_checked(tmp_path: Path) -> None:
    result = _doubled()
    result.optimize()
    result.save(tmp_path / "model.onnx", keep_initializers_as_inputs=True)
    assert onnx.load(tmp_path / "model.onnx").graph == result.model_proto.graph


def test_a_refusal_has_no_model() -> None:
    with pytest.raises(AttributeError, match="a refused export has no model"):
        _ = Result("refused").model


def test_an_error_says_what_its_result_says() -> None:
    refused = Result("refused", what="check")
    error = ExportError(refused)
    assert (str(error), error.result, error.findings) == ("refused: the file is wrong", refused, ())


def test_the_error_is_known_without_onnx_and_torch() -> None:
    code = "import sys, anyshape.results.result; print([m for m in ('torch', 'onnx', 'sympy') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
