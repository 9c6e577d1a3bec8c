"""A result is a value with a model in it: it is saved, run and asked like torch's own."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import TensorProto, helper

from anyshape.onnxfile.interface import Port
from anyshape.results.attempt import Attempt
from anyshape.results.finding import Finding
from anyshape.results.result import ExportError, Result, port_to_dict
from anyshape.results.verification import Check, Failure, Verification
from anyshape.sizes.notation import parse_sizes
from anyshape.source.spans import Span


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


# ---- as plain values


FAILURE = Failure({"n": 5}, 0, "wrong-values", "y", "`y` differs")
RESULT = Result(
    "refused", (Port("x", "float32", ("n", 3)),), (Port("y", "float32", None),), {"n": parse_sizes("1..8", dim="n")},
    limits=("n <= 8",), constants={"k": 2}, attempts=(Attempt("torch.export", "wrong", "`y` differs", 1.23456),),
    repairs=("a repair",),
    verification=Verification((Check({"n": 3}, 0, 0.5),), (FAILURE,), ({"n": 9},), (({"n": 7}, "too dear"),)),
    findings=(Finding("wrong-values", "`y` differs", Span("net.py", 3)),), path=Path("net.onnx"), opset=20,
    seconds=2.00049,
)  # fmt: skip


def test_a_result_is_plain_values() -> None:
    found = json.loads(RESULT.to_json())
    assert found == json.loads(json.dumps(RESULT.to_dict()))
    assert (found["verdict"], found["path"], found["seconds"], found["dims"]) == (
        "refused",
        "net.onnx",
        2.0,
        {"n": "1..8"},
    )
    assert found["attempts"] == [
        {"strategy": "torch.export", "outcome": "wrong", "reason": "`y` differs", "seconds": 1.235}
    ]
    assert found["findings"][0]["rule"] == "wrong-values"


def test_a_verification_tells_what_ran_what_did_not_and_what_was_wrong() -> None:
    found = RESULT.to_dict()["verification"]
    assert found["sizes_run"] == [{"n": 3}]
    assert found["sizes_not_run"] == [{"sizes": {"n": 7}, "reason": "too dear"}]
    assert found["sizes_pytorch_refuses"] == [{"n": 9}]
    assert found["failures"] == [{"sizes": {"n": 5}, "rule": "wrong-values", "output": "y", "sentence": "`y` differs"}]


def test_what_json_has_no_number_for_is_null() -> None:
    endless = Verification((Check({}, 0, math.inf),))
    found = Result("checked", verification=endless).to_dict()
    assert found["verification"]["largest_error_ratio"] is None
    assert Result("unchecked").to_dict()["verification"] is None


def test_a_port_of_unknown_rank_has_no_axes() -> None:
    assert port_to_dict(Port("y", "float32", None)) == {"name": "y", "dtype": "float32", "axes": None}
    assert port_to_dict(Port("x", "int64", ("n", None, 3)))["axes"] == ["n", None, 3]
