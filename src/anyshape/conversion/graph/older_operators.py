"""Nodes in the forms that older opsets have: what became an input is an attribute again, what became an operator is
written in those that it is made of.

Each function changes one node in place, or puts others in its stead. What it cannot write it leaves, and the node is
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.onnxfile.graph import constant_of, first_input, insert, put_instead, whole_numbers

SAME_MEANING = "anyshape.same_meaning"
"""A note on a node in memory: it was written so that an older meaning of its operator gives the same."""

Older = Callable[[ir.Node, int], None]


# ---- helpers


def _number(node: ir.Node, numbers: Any, like: ir.Value | None = None) -> ir.Value:
    """A constant in front of a node: whole numbers, or of the type of a value."""
    dtype = ir.DataType.INT64 if like is None else like.dtype or ir.DataType.FLOAT
    value = insert(node, "Constant", [], {"value": ir.Tensor(np.asarray(numbers, dtype=dtype.numpy()))})
    value.dtype, value.shape = dtype, ir.Shape(np.shape(numbers))
    return value


def _rank(value: ir.Value | None) -> int | None:
    return None if value is None or value.shape is None else len(value.shape)


def _drop_inputs(node: ir.Node, keep: int) -> None:
    for index in range(keep, len(node.inputs)):
        node.replace_input_with(index, None)
    node.resize_inputs(keep)


def _with_new_axis(node: ir.Node, value: ir.Value, axis: int, opset: int) -> ir.Value:
    if opset < 13:
        return insert(node, "Unsqueeze", [value], {"axes": [axis]})
    return insert(node, "Unsqueeze", [value, _number(node, [axis])])


# ---- inputs that were attributes


def _axes_as_attribute(node: ir.Node, opset: int) -> None:  # noqa: ARG001  as all of them
    """Of reductions, Squeeze and Unsqueeze."""
    given = node.inputs[1] if len(node.inputs) > 1 else None
    axes = whole_numbers(given)
    if given is not None and (axes is None or (not axes and node.attributes.get_int("noop_with_empty_axes", 0) == 1)):
        return
    _drop_inputs(node, 1)
    node.attributes.pop("noop_with_empty_axes", None)
    if axes:
        node.attributes["axes"] = ir.AttrInt64s("axes", list(axes))


def _parts_as_sizes(node: ir.Node, opset: int) -> None:
    """A Split into a number of parts says how long each is; before 13 as an attribute."""
    count, axis = node.attributes.get_int("num_outputs", 0), node.attributes.get_int("axis", 0)
    shape = first_input(node).shape
    length = None if shape is None else shape[axis]
    if count and isinstance(length, int):
        part = -(-length // count)
        sizes = [part] * (count - 1) + [length - part * (count - 1)]
        node.resize_inputs(2)
        node.replace_input_with(1, _number(node, sizes))
    if isinstance(length, int) or whole_numbers(node.inputs[1] if len(node.inputs) > 1 else None) is not None:
        node.attributes.pop("num_outputs", None)
    told = whole_numbers(node.inputs[1]) if len(node.inputs) > 1 else None
    if opset < 13 and told is not None:
        node.attributes["split"] = ir.AttrInt64s("split", list(told))
        _drop_inputs(node, 1)


def _pads_of_all_axes(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    axes, pads = (whole_numbers(node.inputs[i]) if len(node.inputs) > i else None for i in (3, 1))
    rank = _rank(first_input(node))
    if axes is None or pads is None or rank is None:
        return
    every = [0] * (2 * rank)
    for place, axis in enumerate(axes):
        every[axis % rank], every[axis % rank + rank] = pads[place], pads[place + len(axes)]
    node.replace_input_with(1, _number(node, every))
    _drop_inputs(node, 3)


def _nothing_for_missing(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    """Before 13 a Resize wants all its inputs: what is not there is empty."""
    for index in (1, 2):
        if len(node.inputs) > index and node.inputs[index] is None:
            empty = insert(node, "Constant", [], {"value": ir.Tensor(np.zeros(0, np.float32))})
            empty.dtype = ir.DataType.FLOAT
            node.replace_input_with(index, empty)


def _tensor_as_value(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    """Before 12 a Constant holds a tensor alone."""
    tensor = constant_of(node.outputs[0])
    if tensor is not None and "value" not in node.attributes:
        node.attributes.clear()
        node.attributes["value"] = ir.AttrTensor("value", ir.Tensor(tensor))


def _zeros_copied(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    """A Reshape before 14 cannot make an empty axis; a shape that is computed holds a 0 only where something is empty,
    and there the check would tell.
    """
    shape = whole_numbers(node.inputs[1])
    if shape is None or 0 not in shape:
        node.attributes.pop("allowzero", None)


# ---- operators that are made of older ones


def _cast(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    dtype = node.inputs[1].dtype if node.inputs[1] is not None else None
    if dtype is not None:
        put_instead(node, insert(node, "Cast", [node.inputs[0]], {"to": int(dtype)}))


def _part_of_shape(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", np.iinfo(np.int64).max)
    if start == 0 and "end" not in node.attributes:
        return
    whole = insert(node, "Shape", [node.inputs[0]])
    whole.dtype = ir.DataType.INT64
    put_instead(node, insert(node, "Slice", [whole, *(_number(node, [one]) for one in (start, end, 0))]))


def _layer_norm(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    x, axis, rank = first_input(node), node.attributes.get_int("axis", -1), _rank(first_input(node))
    epsilon = node.attributes.get_float("epsilon", 1e-5)
    if any(output.uses() or output.is_graph_output() for output in node.outputs[1:]) or (axis != -1 and rank is None):
        return
    axes = [-1] if axis == -1 or rank is None else list(range(axis % rank, rank))

    def mean(value: ir.Value) -> ir.Value:
        return insert(node, "ReduceMean", [value], {"axes": axes, "keepdims": 1}, like=x)

    centred = insert(node, "Sub", [x, mean(x)], like=x)
    spread = insert(node, "Add", [mean(insert(node, "Mul", [centred, centred], like=x)), _number(node, epsilon, x)])
    result = insert(node, "Div", [centred, insert(node, "Sqrt", [spread], like=x)], like=x)
    for operator, given in zip(("Mul", "Add"), node.inputs[1:], strict=False):
        result = result if given is None else insert(node, operator, [result, given], like=x)
    put_instead(node, result)


def _softmax(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    """Before 13 all axes from the named one on are taken together: the last alone means the same."""
    x, axis = first_input(node), node.attributes.get_int("axis", -1)
    rank = _rank(x)
    if axis != -1 and rank is None:
        return
    if rank is not None and axis % rank != rank - 1:
        order = [one for one in range(rank) if one != axis % rank] + [axis % rank]
        moved = insert(node, "Transpose", [x], {"perm": order}, like=x)
        result = insert(node, node.op_type, [moved], {"axis": -1}, like=x)
        made = result.producer()
        assert made is not None
        made.meta[SAME_MEANING] = True
        back = [order.index(one) for one in range(rank)]
        put_instead(node, insert(node, "Transpose", [result], {"perm": back}))
        return
    node.attributes["axis"] = ir.AttrInt64("axis", -1)
    node.meta[SAME_MEANING] = True


def _triangle(node: ir.Node, opset: int) -> None:
    x = first_input(node)
    place = node.inputs[1] if len(node.inputs) > 1 else None
    shape = insert(node, "Shape", [x])

    def counted(axis: int) -> ir.Value:
        size = insert(node, "Gather", [shape, _number(node, axis)], {"axis": 0})
        return insert(node, "Range", [_number(node, 0), size, _number(node, 1)])

    rows, columns = _with_new_axis(node, counted(-2), 1, opset), _with_new_axis(node, counted(-1), 0, opset)
    rows = rows if place is None else insert(node, "Add", [rows, place])
    upper = node.attributes.get_int("upper", 1)
    # columns >= rows above the diagonal, columns <= rows below
    outside = insert(node, "Less" if upper else "Greater", [columns, rows])
    if x.dtype == ir.DataType.BOOL:  # for which ONNX Runtime has no Where
        put_instead(node, insert(node, "And", [insert(node, "Not", [outside]), x]))
    else:
        put_instead(node, insert(node, "Where", [outside, _number(node, 0, x), x]))


def _or_equal(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    """As two comparisons: the opposite of the other one would be true for NaN."""
    apart = insert(node, node.op_type.removesuffix("OrEqual"), list(node.inputs))
    put_instead(node, insert(node, "Or", [apart, insert(node, "Equal", list(node.inputs))]))


def _hard_swish(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    x = first_input(node)
    gate = insert(node, "HardSigmoid", [x], {"alpha": 1 / 6, "beta": 0.5}, like=x)
    put_instead(node, insert(node, "Mul", [x, gate]))


def _mish(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    x = first_input(node)
    gate = insert(node, "Tanh", [insert(node, "Softplus", [x], like=x)], like=x)
    put_instead(node, insert(node, "Mul", [x, gate]))


def _celu(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    x, alpha = first_input(node), node.attributes.get_float("alpha", 1.0)
    unit = insert(node, "Elu", [insert(node, "Div", [x, _number(node, alpha, x)], like=x)], {"alpha": 1.0}, like=x)
    put_instead(node, insert(node, "Mul", [unit, _number(node, alpha, x)]))


def _chosen_extreme(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    """Before 12 Max and Min take floats alone: the larger of two whole numbers is chosen."""
    if len(node.inputs) != 2 or node.inputs[0] is None or node.inputs[0].dtype not in _INTEGERS:
        return
    chosen = insert(node, "Greater" if node.op_type == "Max" else "Less", list(node.inputs))
    put_instead(node, insert(node, "Where", [chosen, *node.inputs]))


_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)


def _grid_words(node: ir.Node, opset: int) -> None:  # noqa: ARG001
    """Before 20 the modes of GridSample have the names of images."""
    older = {"linear": "bilinear", "cubic": "bicubic"}
    mode = node.attributes.get_string("mode", "linear")
    node.attributes["mode"] = ir.AttrString("mode", older.get(mode, mode))
    if _rank(first_input(node)) == 4:  # more axes came with the new names
        node.meta[SAME_MEANING] = True


_REDUCTIONS = ("Max", "Min", "Mean", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")

OLDER: dict[str, tuple[int, Older]] = {
    **{f"Reduce{kind}": (18, _axes_as_attribute) for kind in _REDUCTIONS},
    "ReduceSum": (13, _axes_as_attribute),
    "Squeeze": (13, _axes_as_attribute),
    "Unsqueeze": (13, _axes_as_attribute),
    "Split": (18, _parts_as_sizes),
    "Pad": (18, _pads_of_all_axes),
    "Resize": (13, _nothing_for_missing),
    "Constant": (12, _tensor_as_value),
    "Reshape": (14, _zeros_copied),
    "CastLike": (15, _cast),
    "Shape": (15, _part_of_shape),
    "LayerNormalization": (17, _layer_norm),
    "Softmax": (13, _softmax),
    "LogSoftmax": (13, _softmax),
    "Trilu": (14, _triangle),
    "GreaterOrEqual": (12, _or_equal),
    "LessOrEqual": (12, _or_equal),
    "HardSwish": (14, _hard_swish),
    "Mish": (18, _mish),
    "Celu": (12, _celu),
    "Max": (12, _chosen_extreme),
    "Min": (12, _chosen_extreme),
    "GridSample": (20, _grid_words),
}
"""Operator -> since which opset it has its present form, and what writes it before."""
