"""A result is called on tensors, arrays and numbers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import anyshape
from anyshape.runtime.model_call import as_numpy


def test_a_result_refuses_what_it_does_not_take() -> None:
    result = anyshape.export(nn.Linear(4, 4), torch.randn(3, 4), dims={"input": "batch 4"})
    with pytest.raises(anyshape.DeclarationError) as raised:
        result(torch.randn(2, 4), torch.randn(2, 4))
    assert str(raised.value) == "2 arguments are given: the file takes `input`"


def repeated(x: torch.Tensor, times: int, flip: bool = False) -> torch.Tensor:
    return (x.flip(0) if flip else x).repeat(times, 1)


def test_a_result_takes_the_call_that_it_was_made_of() -> None:
    result = anyshape.export(repeated, (torch.randn(3, 4), 2, True), dims={"x": "n 4"}, quick=True)
    x = torch.randn(5, 4)
    for found in (result(x), result(x, 2, True), result(x, times=2), result(x=x, times=2, flip=True)):
        assert torch.equal(found[0], repeated(x, 2, flip=True))
    with pytest.raises(anyshape.DeclarationError) as raised:
        result(x, 3)
    assert str(raised.value) == "`times` is 3, but 2 is part of the file"


def test_an_input_that_is_missing_or_unknown_is_named() -> None:
    result = anyshape.export(
        nn.Bilinear(2, 3, 4), (torch.randn(3, 2), torch.randn(3, 3)), dims={"input1": "n 2", "input2": "n 3"}
    )
    with pytest.raises(anyshape.DeclarationError, match="takes 2 inputs, `input2` is missing"):
        result(torch.randn(2, 2))
    with pytest.raises(anyshape.DeclarationError, match="`more` is unknown: the file takes `input1`, `input2`"):
        result(torch.randn(2, 2), more=1)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (torch.ones(2, requires_grad=True), "float32", np.ones(2, np.float32)),
        (torch.ones(2, dtype=torch.float64), "float32", np.ones(2, np.float32)),
        (torch.ones(2, dtype=torch.bfloat16), "bfloat16", np.ones(2, np.float32)),
        (torch.arange(6).reshape(2, 3).T, "int64", np.arange(6).reshape(2, 3).T),
        (3, "int64", np.array(3)),
        (0.5, "float32", np.array(0.5, np.float32)),
        (np.ones(2), "float32", np.ones(2, np.float32)),
    ],
)
def test_a_leaf_becomes_what_the_runtime_takes(value: object, dtype: str, expected: np.ndarray) -> None:
    found = as_numpy(value, dtype)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def test_a_tensor_shares_its_memory() -> None:
    tensor = torch.zeros(3)
    assert np.shares_memory(as_numpy(tensor, "float32"), tensor.numpy())


WITHOUT_TORCH = """
import sys, numpy as np, onnx.parser, onnx_ir as ir
from anyshape.onnxfile.interface import Port
from anyshape.runtime.model_call import run_model
head = '<ir_version: 9, opset_import: ["" : 20]> g '
model = onnx.parser.parse_model(head + "(float[n] x) => (float[n] y) { y = Neg(x) }")
(y,) = run_model(ir.from_proto(model), [Port("x", "float32", ("n",))], [np.ones(2, np.float32)], {})
print(type(y).__name__, y.tolist(), "torch" in sys.modules)
"""


def test_without_torch_arrays_are_returned() -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True)
    assert ran.stdout == "ndarray [-1.0, -1.0] False\n"
