"""Nodes of float64 in operators that keep all digits: an attribute of a file is a float32, and of some operators ONNX
Runtime has no kernel for float64.

In memory an attribute is the number that the model has: one that float32 holds exactly is left where it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.onnxfile.graph import (
    constant_of,
    every_node,
    first_input,
    insert,
    is_op,
    is_standard,
    maker,
    put_instead,
    users,
)


def keep_digits(model: ir.Model) -> None:
    """Write each node of the table anew that computes in float64 and would lose digits, or could not be run."""
    for node in every_node(model.graph):
        known = _TABLE.get(node.op_type) if is_standard(node) and node.inputs else None
        first = node.inputs[0] if node.inputs else None
        if known is None or first is None or first.dtype != ir.DataType.DOUBLE or len(_results_in_use(node)) != 1:
            continue
        numbers, compose, has_kernel = known
        given = {name: node.attributes.get_float(name, default) for name, default in numbers.items()}
        if has_kernel and all(map(_is_kept, given.values())):
            continue
        written = compose(_Writer(node), *node.inputs, **given)
        if written is not None:
            put_instead(node, written)
    for node in every_node(model.graph, "Mul", "Div"):
        _keep_scale(node)


def _is_kept(value: float) -> bool:
    return float(np.float32(value)) == value


def _results_in_use(node: ir.Node) -> list[ir.Value]:
    return [value for value in node.outputs if value.uses() or value.is_graph_output()]


class _Writer:
    """Adds nodes in front of one: `write.Add(x, 0.5)`; a number is a constant in double."""

    def __init__(self, node: ir.Node) -> None:
        self.node = node

    def __getattr__(self, operator: str) -> Callable[..., ir.Value]:
        return partial(self._add, operator)

    def _add(self, operator: str, *inputs: Any, **attributes: Any) -> ir.Value:
        return insert(self.node, operator, [self._value(one) for one in inputs], attributes)

    def _value(self, given: Any) -> ir.Value:
        if isinstance(given, ir.Value):
            return given
        # of sizes and axes, which are whole, lists are given
        array = np.asarray(given, np.int64 if isinstance(given, list) else np.float64)
        return insert(self.node, "Constant", [], {"value": ir.tensor(array)})


Values = Any
"""Of the graph; without a type for those that an operator may leave out."""


# ---- a product of matrices beside a product with a number: ONNX Runtime makes one node of both, whose attribute is the
# number. A sign between them, which the number takes back, keeps them apart


def _keep_scale(node: ir.Node) -> None:
    for place in (0, 1) if node.op_type == "Mul" else (1,):
        scale, value = constant_of(node.inputs[place]), node.inputs[1 - place]
        if scale is None or scale.size != 1 or scale.dtype != np.float64 or _is_kept(scale.item()) or value is None:
            continue
        before, after = _is_product(value), any(map(_leads_to_product, node.outputs))
        if before or after:
            write = _Writer(node)
            factor = node.inputs[place] if before and after else np.negative(scale)
            result = getattr(write, node.op_type)(write.Neg(value) if before else value, factor)
            put_instead(node, write.Neg(result) if after else result)
            return


def _is_product(value: ir.Value) -> bool:
    while (turned := maker(value, "Transpose")) is not None:
        value = first_input(turned)
    return maker(value, "MatMul") is not None


def _leads_to_product(value: ir.Value) -> bool:
    return any(
        is_op(node, "MatMul") or (is_op(node, "Transpose") and _leads_to_product(node.outputs[0]))
        for node in users(value)
    )


# ---- activations


def _leaky(write: _Writer, x: Values, slope: Values = None, *, alpha: float = 0.0) -> ir.Value:
    return write.Where(write.Less(x, 0.0), write.Mul(x, alpha if slope is None else slope), x)


def _power_less_one(write: _Writer, x: Values) -> ir.Value:
    """`exp(x) - 1` with all its digits near zero."""
    return write.Mul(write.Tanh(write.Mul(x, 0.5)), write.Add(write.Exp(x), 1.0))


def _elu(write: _Writer, x: Values, *, alpha: float, gamma: float = 1.0) -> ir.Value:
    below = write.Mul(_power_less_one(write, write.Min(x, 0.0)), alpha * gamma)
    return write.Where(write.Greater(x, 0.0), x if gamma == 1.0 else write.Mul(x, gamma), below)


def _hard_sigmoid(write: _Writer, x: Values, *, alpha: float, beta: float) -> ir.Value:
    return write.Clip(write.Add(write.Mul(x, alpha), beta), 0.0, 1.0)


def _hard_swish(write: _Writer, x: Values) -> ir.Value:
    return write.Mul(x, _hard_sigmoid(write, x, alpha=1 / 6, beta=0.5))


def _shrink(write: _Writer, x: Values, *, lambd: float, bias: float) -> ir.Value:
    small = write.And(write.GreaterOrEqual(x, -lambd), write.LessOrEqual(x, lambd))
    return write.Where(small, 0.0, write.Sub(x, write.Mul(write.Sign(x), bias)) if bias else x)


def _softplus(write: _Writer, x: Values) -> ir.Value:
    """What 1 + a small power rounds away is put back by the quotient."""
    power = write.Exp(write.Neg(write.Abs(x)))
    total = write.Add(power, 1.0)
    rounded = write.Sub(total, 1.0)
    lost = write.Equal(rounded, 0.0)
    quotient = write.Div(power, write.Where(lost, 1.0, rounded))
    return write.Add(write.Max(x, 0.0), write.Where(lost, power, write.Mul(write.Log(total), quotient)))


def _gelu(write: _Writer, x: Values) -> ir.Value:
    if write.node.attributes.get_string("approximate", "none") == "tanh":
        inner = write.Mul(write.Add(x, write.Mul(write.Mul(write.Mul(x, x), x), 0.044715)), math.sqrt(2 / math.pi))
        turned = write.Tanh(inner)
    else:
        turned = _erf(write, write.Mul(x, math.sqrt(0.5)))
    return write.Mul(write.Mul(x, 0.5), write.Add(turned, 1.0))


# ---- the error function: up to 1 by its power series, from there to 6 by exp(z * z) * erfc(z), which is smooth in
# 2 / (2 + z): a polynomial through its values at the 18 zeros of a Chebyshev polynomial. Beyond, it is 1

_SERIES = tuple((-1) ** n * 2 / (math.sqrt(math.pi) * math.factorial(n) * (2 * n + 1)) for n in reversed(range(20)))
_TAIL = (
    1.4495643113419578e-13, -9.321424201169892e-13, -1.3919347826387398e-13, 2.2116545307548472e-11,
    -7.360635504868664e-11, -2.6866737279095447e-10, 2.6240024103160866e-09, -5.886316438866986e-10,
    -7.005318546704507e-08, 1.6349938614647468e-07, 1.9795618158539775e-06, -7.340517941415228e-06,
    -8.079220426243645e-05, 0.0001971391777283487, 0.005588816281839573, 0.038560570425182406,
    0.16189356804102498, 0.2214295402299318,
)  # fmt: skip
_MIDDLE, _HALF_WIDTH = 11 / 24, 5 / 24
"""Of the range of 2 / (2 + z), which goes from 1/4 to 2/3."""


def _erf(write: _Writer, x: Values) -> ir.Value:
    size = write.Min(write.Abs(x), 6.0)
    near = write.Mul(x, _polynomial(write, write.Mul(size, size), _SERIES))
    place = write.Div(write.Sub(write.Div(2.0, write.Add(size, 2.0)), _MIDDLE), _HALF_WIDTH)
    tail = write.Mul(write.Exp(write.Neg(write.Mul(size, size))), _polynomial(write, place, _TAIL))
    return write.Where(write.Less(size, 1.0), near, write.Mul(write.Sign(x), write.Sub(1.0, tail)))


def _polynomial(write: _Writer, x: Values, coefficients: Sequence[float]) -> ir.Value:
    """Coefficients from the highest power down."""
    total: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        total = write.Add(write.Mul(total, x), coefficient)
    return total  # type: ignore[no-any-return]


# ---- norms and products


def _layer_norm(
    write: _Writer, x: Values, scale: Values = None, shift: Values = None, *, epsilon: float
) -> ir.Value | None:
    axis = write.node.attributes.get_int("axis", -1)
    if axis >= 0:
        if x.shape is None:
            return None
        axis -= len(x.shape)
    axes = list(range(axis, 0))
    centred = write.Sub(x, write.ReduceMean(x, axes, keepdims=1))
    variance = write.ReduceMean(write.Mul(centred, centred), axes, keepdims=1)
    result = write.Div(centred, write.Sqrt(write.Add(variance, epsilon)))
    result = result if scale is None else write.Mul(result, scale)
    return result if shift is None else write.Add(result, shift)


def _batch_norm(
    write: _Writer, x: Values, scale: Values, shift: Values, mean: Values, variance: Values, *, epsilon: float
) -> ir.Value | None:
    if x.shape is None or write.node.attributes.get_int("training_mode", 0) != 0:
        return None
    later = list(range(1, len(x.shape) - 1))

    def of_channels(value: Values) -> Values:
        return write.Unsqueeze(value, later) if later else value

    factor = write.Div(scale, write.Sqrt(write.Add(variance, epsilon)))
    return write.Add(write.Mul(write.Sub(x, of_channels(mean)), of_channels(factor)), of_channels(shift))


def _product(
    write: _Writer, left: Values, right: Values, added: Values = None, *, alpha: float, beta: float
) -> ir.Value:
    turned = [write.node.attributes.get_int(name, 0) for name in ("transA", "transB")]
    left, right = (write.Transpose(m, perm=[1, 0]) if t else m for m, t in zip((left, right), turned, strict=True))
    result = write.Mul(write.MatMul(left, right), alpha)
    return result if added is None else write.Add(result, write.Mul(added, beta))


_Row = tuple[Mapping[str, float], Callable[..., ir.Value | None], bool]
_TABLE: dict[str, _Row] = {
    "LayerNormalization": ({"epsilon": 1e-5}, _layer_norm, True),
    "BatchNormalization": ({"epsilon": 1e-5}, _batch_norm, True),
    "Gemm": ({"alpha": 1.0, "beta": 1.0}, _product, True),
    "Shrink": ({"lambd": 0.5, "bias": 0.0}, _shrink, True),
    "LeakyRelu": ({"alpha": 0.01}, _leaky, False),
    "PRelu": ({}, _leaky, False),
    "ThresholdedRelu": (
        {"alpha": 1.0}, lambda write, x, *, alpha: write.Where(write.LessOrEqual(x, alpha), 0.0, x), False
    ),
    "Elu": ({"alpha": 1.0}, _elu, False),
    # PyTorch's own numbers: ONNX has them in float32
    "Selu": ({"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}, _elu, False),
    "HardSigmoid": ({"alpha": 0.2, "beta": 0.5}, _hard_sigmoid, False),
    "HardSwish": ({}, _hard_swish, False),
    "Softplus": ({}, _softplus, False),
    "Softsign": ({}, lambda write, x: write.Div(x, write.Add(write.Abs(x), 1.0)), False),
    "Mish": ({}, lambda write, x: write.Mul(x, write.Tanh(_softplus(write, x))), False),
    "Erf": ({}, _erf, False),
    "Gelu": ({}, _gelu, False),
}  # fmt: skip
"""For each operator its attributes with their defaults, how it is composed, and whether float64 has a kernel."""
