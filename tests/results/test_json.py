"""A result as plain values: what `--json` prints."""

from __future__ import annotations

import json
import math
from pathlib import Path

from anyshape.onnxfile.interface import Port
from anyshape.results.attempt import Attempt
from anyshape.results.finding import Finding
from anyshape.results.json import port_to_dict, result_to_dict
from anyshape.results.result import Result
from anyshape.results.verification import Check, Failure, Verification
from anyshape.sizes.notation import parse_sizes
from anyshape.source.spans import Span

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
    assert found == json.loads(json.dumps(result_to_dict(RESULT)))
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
    found = result_to_dict(RESULT)["verification"]
    assert found["sizes_run"] == [{"n": 3}]
    assert found["sizes_not_run"] == [{"sizes": {"n": 7}, "reason": "too dear"}]
    assert found["sizes_pytorch_refuses"] == [{"n": 9}]
    assert found["failures"] == [{"sizes": {"n": 5}, "rule": "wrong-values", "output": "y", "sentence": "`y` differs"}]


def test_what_json_has_no_number_for_is_null() -> None:
    endless = Verification((Check({}, 0, math.inf),))
    found = result_to_dict(Result("checked", verification=endless))
    assert found["verification"]["largest_error_ratio"] is None
    assert result_to_dict(Result("unchecked"))["verification"] is None


def test_a_port_of_unknown_rank_has_no_axes() -> None:
    assert port_to_dict(Port("y", "float32", None)) == {"name": "y", "dtype": "float32", "axes": None}
    assert port_to_dict(Port("x", "int64", ("n", None, 3)))["axes"] == ["n", None, 3]
