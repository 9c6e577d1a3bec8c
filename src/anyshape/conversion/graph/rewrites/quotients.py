"""Divisions in fewer nodes: floor divisions of sizes, quotients by a root, means over several axes."""

from __future__ import annotations

import operator
from collections.abc import Callable

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Sizes, put_instead, size_read
from anyshape.onnxfile.graph import constant, first_input, maker, nodes_of, whole_numbers

# ---- floor divisions of sizes that are never negative
#
# There ONNX's Div, which cuts towards zero, is one already. The size of a feature map, `(height - 1)//8 + 1`, is
# translated with a Mod and a Sub for numbers below zero.


def shorten_floors(graph: ir.Graph, sizes: Sizes) -> None:
    """Div(Sub(a, Mod(a, c)), c) becomes Div(a, c) where a >= 0 and c > 0."""
    for node in nodes_of(graph, "Div"):
        rest = maker(node.inputs[0], "Sub")
        modulo = None if rest is None else maker(rest.inputs[1], "Mod")
        if rest is None or modulo is None or modulo.attributes.get_int("fmod", 0) == 1:
            continue
        dividend, divisor = first_input(rest), node.inputs[1]
        if modulo.inputs[0] is not dividend or _one_number(modulo.inputs[1]) != _one_number(divisor):
            continue
        least = _least(dividend, sizes)
        if (_one_number(divisor) or 0) > 0 and least is not None and least >= 0:
            node.replace_input_with(0, dividend)


def _one_number(value: ir.Value | None) -> int | None:
    numbers = whole_numbers(value)
    return numbers[0] if numbers is not None and len(numbers) == 1 else None


def _least(value: ir.Value | None, sizes: Sizes) -> int | None:
    """The least that a number computed from sizes may be; None where nothing is known."""
    node = maker(value, "Squeeze", "Shape", *_LEAST)
    if node is None:
        return _one_number(value)
    if node.op_type == "Shape":
        return sizes.smallest(size_read(node, sizes))
    first = _least(node.inputs[0], sizes)
    if node.op_type == "Squeeze" or first is None:
        return first
    # what is known of a size is how small it may be: only a number can be taken away
    second = _one_number(node.inputs[1]) if node.op_type == "Sub" else _least(node.inputs[1], sizes)
    return None if second is None else _LEAST[node.op_type](first, second)


def _product(first: int, second: int) -> int | None:
    return first * second if first >= 0 and second >= 0 else None


def _quotient(first: int, second: int) -> int | None:
    """The divisor may be large."""
    return 0 if first >= 0 and second > 0 else None


_LEAST: dict[str, Callable[[int, int], int | None]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": _product,
    "Div": _quotient,
}
"""Of two numbers, from the least that each may be."""


# ---- quotients by a root
#
# torch's `rsqrt` is translated as the reciprocal of a root and a product with it. ONNX Runtime knows a root-mean-square
# norm when it sees a quotient.


def divide_by_roots(graph: ir.Graph, sizes: Sizes) -> None:
    """Mul(x, Reciprocal(Sqrt(y))) becomes Div(x, Sqrt(y))."""
    for node in nodes_of(graph, "Mul"):
        for place, value in enumerate(node.inputs):
            inverse = maker(value, "Reciprocal")
            root = maker(first_input(inverse), "Sqrt") if inverse is not None else None
            if root is None:
                continue
            put_instead(node, sizes, "Div", [node.inputs[1 - place], root.outputs[0]])
            break


# ---- a mean over several axes is taken at once, and not axis by axis


def join_means(graph: ir.Graph, sizes: Sizes) -> None:
    """ReduceMean(ReduceMean(x, a), b) that keep their axes become ReduceMean(x, [a, b])."""
    for node in nodes_of(graph, "ReduceMean"):
        inner = maker(node.inputs[0], "ReduceMean")
        if inner is None or len(inner.outputs[0].uses()) > 1:
            continue
        axes = [*(_axes_of_mean(inner) or ()), *(_axes_of_mean(node) or ())]
        if None in (_axes_of_mean(inner), _axes_of_mean(node)) or min(axes) < 0 or len(set(axes)) < len(axes):
            continue
        put_instead(node, sizes, "ReduceMean", [first_input(inner), constant(graph, axes)], {"keepdims": 1})


def _axes_of_mean(node: ir.Node) -> tuple[int, ...] | None:
    """The axes over which a node that keeps them takes its mean."""
    keeps = node.attributes.get_int("keepdims", 1) == 1
    return (whole_numbers(node.inputs[1]) or None) if keeps and len(node.inputs) > 1 else None
