"""Operators of float64 keep the digits of their numbers, and run where ONNX Runtime has no kernel."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape.conversion.graph.doubles import keep_digits

X = torch.cat([torch.linspace(-8, 8, 250, dtype=torch.float64), torch.logspace(-12, 0, 25, dtype=torch.float64)])
ROWS = X.reshape(55, 5)
ROW = torch.tensor([0.3, -0.7, 1.1, 0.9, 2.3], dtype=torch.float64)


def written(operator: str, inputs: list[Tensor], dtype: ir.DataType = ir.DataType.DOUBLE, **attributes: object):
    """A model of one node, with its digits kept."""
    values = [
        ir.Value(name=f"x{i}", type=ir.TensorType(dtype), shape=ir.Shape(one.shape)) for i, one in enumerate(inputs)
    ]
    node = ir.node(operator, values, attributes)
    node.outputs[0].name, node.outputs[0].type = "y", ir.TensorType(dtype)
    graph = ir.Graph(values, node.outputs, nodes=[node], opset_imports={"": 20}, name="main")
    model = ir.Model(graph, ir_version=9)
    keep_digits(model)
    return model


def operators(model: ir.Model) -> Counter[str]:
    return Counter(node.op_type for node in model.graph)


def run(model: ir.Model, inputs: list[Tensor]) -> np.ndarray:
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    (result,) = session.run(None, {f"x{i}": one.numpy() for i, one in enumerate(inputs)})
    return result


@pytest.mark.parametrize(
    ("operator", "attributes", "inputs", "function"),
    [
        ("LayerNormalization", {"epsilon": 0.1}, [ROWS, ROW, ROW], lambda x, w, b: F.layer_norm(x, (5,), w, b, 0.1)),
        (
            "LayerNormalization", {"epsilon": 0.3, "axis": 1}, [ROWS.reshape(11, 5, 5) ** 2, torch.ones(5, 5).double()],
            lambda x, w: F.layer_norm(x, (5, 5), w, None, 0.3),
        ),
        (
            "BatchNormalization", {"epsilon": 0.1}, [ROWS.reshape(11, 5, 5), ROW, ROW, ROW, ROW * ROW],
            lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, eps=0.1),
        ),
        ("Gemm", {"alpha": 0.7, "beta": 0.3}, [ROWS, ROWS[:5], ROW], lambda x, y, b: 0.7 * (x @ y) + 0.3 * b),
        (
            "Gemm", {"alpha": 0.1, "transA": 1, "transB": 1}, [ROWS[:5], ROWS],
            lambda x, y: 0.1 * (x.t() @ y.t()),
        ),
        ("Shrink", {"lambd": 0.3}, [X], lambda x: F.hardshrink(x, 0.3)),
        ("Shrink", {"lambd": 0.3, "bias": 0.3}, [X], lambda x: F.softshrink(x, 0.3)),
        ("LeakyRelu", {}, [X], F.leaky_relu),
        ("LeakyRelu", {"alpha": 0.3}, [X], lambda x: F.leaky_relu(x, 0.3)),
        ("PRelu", {}, [ROWS, ROW], lambda x, slope: torch.where(x < 0, x * slope, x)),
        ("ThresholdedRelu", {"alpha": 0.1}, [X], lambda x: F.threshold(x, 0.1, 0.0)),
        ("Elu", {"alpha": 0.3}, [X], lambda x: F.elu(x, 0.3)),
        ("Selu", {}, [X], F.selu),
        ("HardSigmoid", {"alpha": 1 / 6}, [X], F.hardsigmoid),
        ("HardSwish", {}, [X], F.hardswish),
        ("Softplus", {}, [4 * X], lambda x: F.softplus(x, threshold=100)),
        ("Softsign", {}, [X], F.softsign),
        ("Mish", {}, [X], F.mish),
        ("Erf", {}, [X], torch.erf),
        ("Gelu", {}, [X], F.gelu),
        ("Gelu", {"approximate": "tanh"}, [X], lambda x: F.gelu(x, approximate="tanh")),
    ],
)  # fmt: skip
def test_all_digits_are_kept(operator: str, attributes: dict[str, object], inputs: list[Tensor], function) -> None:
    want = function(*inputs).numpy()
    got = run(written(operator, inputs, **attributes), inputs)
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=4e-16 * np.abs(want).max())


def test_nan_and_infinities_stay_what_they_are() -> None:
    x = torch.tensor([torch.nan, torch.inf, -torch.inf], dtype=torch.float64)
    for operator, function in (
        ("LeakyRelu", F.leaky_relu),
        ("Elu", F.elu),
        ("Softplus", F.softplus),
        ("Erf", torch.erf),
        ("ThresholdedRelu", lambda x: F.threshold(x, 1.0, 0.0)),
    ):
        np.testing.assert_array_equal(run(written(operator, [x]), [x]), function(x).numpy(), err_msg=operator)


def test_numbers_that_float32_holds_and_other_types_stay() -> None:
    assert operators(written("LayerNormalization", [ROWS, ROW], epsilon=2**-17)) == {"LayerNormalization": 1}
    assert operators(written("Gemm", [ROWS[:5], ROWS[:5]])) == {"Gemm": 1}
    assert operators(written("LeakyRelu", [X], ir.DataType.FLOAT)) == {"LeakyRelu": 1}


def test_a_number_beside_a_product_is_not_taken_into_it() -> None:
    """ONNX Runtime would make it an attribute, which is a float32."""
    inputs = [ROWS[:5], ROWS[5:10]]
    values = [ir.Value(name=f"x{i}", type=ir.TensorType(ir.DataType.DOUBLE), shape=ir.Shape((5, 5))) for i in range(2)]
    scale, other = (ir.node("Constant", [], {"value": ir.tensor(np.float64(number))}) for number in (0.1, 0.3))
    nodes = [scale, other, ir.node("Mul", [values[0], scale.outputs[0]])]
    nodes.append(ir.node("Transpose", [nodes[-1].outputs[0]], {"perm": [1, 0]}))
    nodes.append(ir.node("MatMul", [nodes[-1].outputs[0], values[1]]))
    nodes.append(ir.node("Div", [nodes[-1].outputs[0], other.outputs[0]]))
    nodes.append(ir.node("MatMul", [nodes[-1].outputs[0], values[1]]))
    nodes[-1].outputs[0].name, nodes[-1].outputs[0].type = "y", ir.TensorType(ir.DataType.DOUBLE)
    model = ir.Model(
        ir.Graph(values, nodes[-1].outputs, nodes=nodes, opset_imports={"": 20}, name="main"), ir_version=9
    )
    before = run(model, inputs)
    keep_digits(model)
    assert operators(model)["Neg"] == 3, "one for the first, two for the second, which stands between products"
    want = (((inputs[0] * 0.1).t() @ inputs[1]) / 0.3 @ inputs[1]).numpy()
    np.testing.assert_allclose(run(model, inputs), want, rtol=1e-13)
    assert np.abs(before / want - 1).max() > 1e-10, "as it was"
