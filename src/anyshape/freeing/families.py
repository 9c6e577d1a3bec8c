"""Operators that behave alike, and how their axes are written in the different opsets."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from anyshape.freeing.walk import Walk
from anyshape.onnxfile.graph import attribute
from anyshape.sizes.expressions import Shape, is_number, number

BROADCASTING = frozenset(
    (
        *("Add", "Sub", "Mul", "Div", "Pow", "Mod", "PRelu", "Sum", "Mean", "Min", "Max", "Where"),
        *("And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"),
        *("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
    )
)
UNARY = frozenset(
    (
        *("Abs", "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Sin", "Cos", "Tan", "Tanh", "Sigmoid", "Relu", "Gelu"),
        *("LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Erf", "Mish"),
        *("Floor", "Ceil", "Round", "Sign", "Not", "BitwiseNot", "IsNaN", "IsInf", "Cast", "CastLike", "Identity"),
        *("Clip", "Dropout", "Celu", "ThresholdedRelu"),
        *("Acos", "Asin", "Atan", "Cosh", "Sinh", "Acosh", "Asinh", "Atanh"),
    )
)
ELEMENTWISE = BROADCASTING | UNARY


def axes_of(walk: Walk, node: ir.Node, rank: int, place: int = 1) -> list[int] | None:
    """The axes that a node names, as an attribute (older opsets) or as an input; None where it names none."""
    found = attribute(node, "axes")
    if found is None and len(node.inputs) > place:
        found = walk.constant(node.inputs[place])
    return None if found is None else [int(axis) % max(rank, 1) for axis in found]


def einsum_terms(node: ir.Node) -> list[str] | None:
    """The letters of each operand and of the result; None where they are not all written down."""
    equation = attribute(node, "equation", "")
    equation = equation.decode() if isinstance(equation, bytes) else str(equation)
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    return [*terms, right] if arrow and "." not in equation and len(terms) == len(node.inputs) else None


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The sizes that tensors have together; of two free ones the first."""
    rank = max((len(shape) for shape in shapes), default=0)
    result = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in shapes if len(shape) >= -axis and shape[axis] != 1]
        free = [size for size in sizes if not is_number(size)]
        result.append(free[0] if free else sizes[0] if sizes else number(1))
    return tuple(result)
