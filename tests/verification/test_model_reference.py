"""A model as the reference of a file: tensors become arrays of their own type, and further runs are made once."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
import torch
from torch import Tensor

from anyshape.model import oracle as references
from anyshape.model.request import understand
from anyshape.onnxfile.interface import read_interface
from anyshape.results.verification import Check, Failure
from anyshape.runtime.session import Session
from anyshape.verification.model_reference import ModelChecker, array_of, checker_beside_model


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool],
    ids=str,
)
def test_a_tensor_keeps_its_type_and_its_memory(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0, 1], [1, 1]]).to(dtype)
    found = array_of(tensor)
    assert f"torch.{found.dtype}" == str(dtype)
    assert np.shares_memory(found, tensor.numpy())
    np.testing.assert_array_equal(found, tensor.numpy())


def test_types_that_numpy_lacks_are_borrowed() -> None:
    values = torch.tensor([1.0, -2.5, float("inf"), float("nan")])
    found = array_of(values.to(torch.bfloat16))
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found.astype(np.float32), values.numpy())
    narrow = array_of(values[:2].to(torch.float8_e4m3fn))
    assert (narrow.dtype, narrow.astype(np.float32).tolist()) == (ml_dtypes.float8_e4m3fn, [1.0, -2.5])


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_what_numpy_cannot_hold_at_all_has_another_type_than_any() -> None:
    quantised = torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.quint8)
    assert (array_of(quantised).shape, array_of(quantised).dtype) == ((2, 3), object)


def test_views_and_signs_that_wait_are_resolved() -> None:
    assert array_of(torch.arange(6).reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]
    signed = torch.tensor([1 + 2j]).conj().imag
    assert signed.is_neg()
    assert array_of(signed).tolist() == [-2.0]


# ---- on the bench


def beside(path: Path, nodes: str) -> ModelChecker:
    """A file of these nodes beside a model that doubles."""
    text = f'<ir_version: 9, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), path)
    request = understand(twice, (torch.randn(3),), None, dims={"x": "n"}, sizes=None, make_inputs=None)
    oracle = references.from_example(request.target, request.signature, request.spec, seed=0)
    interface = read_interface(onnx.load(path))
    return checker_beside_model(Session(path), interface, oracle, request.spec.inputs(request.signature))


def twice(x: Tensor) -> Tensor:
    return x * 2


def test_a_right_file_is_right_and_a_wrong_one_wrong(tmp_path: Path) -> None:
    right = beside(tmp_path / "right.onnx", "y = Add (x, x)")
    assert isinstance(right.judge(right.reference.run({"n": 7})), Check)
    wrong = beside(tmp_path / "wrong.onnx", "y = Mul (x, x)")
    judged = wrong.judge(wrong.reference.run({"n": 7}, 1))
    assert isinstance(judged, Failure)
    assert (judged.sizes, judged.content, judged.rule, judged.output) == ({"n": 7}, 1, "wrong-values", "y")


def test_further_runs_are_made_once_for_all_that_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checker = beside(tmp_path / "wrong.onnx", "y = Mul (x, x)")
    oracle, asked = checker.reference.oracle, []
    exact, jittered = oracle.exact, oracle.jittered
    monkeypatch.setattr(oracle, "exact", lambda run: asked.append("exact") or exact(run))
    monkeypatch.setattr(oracle, "jittered", lambda run, seed, **how: asked.append(seed) or jittered(run, seed, **how))
    (expected,) = checker.reference.expected(checker.reference.run({"n": 5}))
    assert asked == []
    assert [expected.noise.exact().dtype, expected.noise.exact().dtype] == [np.float64, np.float64]
    assert all(expected.noise.jittered(number).shape == (5,) for number in (0, 1, 0))
    assert asked == ["exact", 0, 1]
