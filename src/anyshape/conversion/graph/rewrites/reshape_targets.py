"""Shapes that are told once and for all: 0 for an axis that a Reshape keeps, 1 for one that an Expand keeps.

The translation computes each shape from the sizes of inputs while the model runs. Where all of it follows from what is
known, a constant says the same. -1 stands for the one size that is left, and only where no other axis can be empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Size, Sizes, size_read
from anyshape.onnxfile.graph import constant, first_input, insert, maker, nodes_of, replace, whole_numbers


def write_targets(graph: ir.Graph, sizes: Sizes) -> None:
    for node in nodes_of(graph, "Reshape", "Expand"):
        have, wanted = sizes.of(first_input(node)), sizes.of(node.outputs[0])
        if node.op_type == "Expand":
            _keep_own_axes(node, sizes)
            wanted = wanted if wanted is not None and None not in wanted else _sizes_behind_expand(node, sizes)
        if have is None or wanted is None:
            continue
        if have == wanted and None not in have:
            replace(node.outputs[0], first_input(node))
        elif whole_numbers(node.inputs[1]) is None:
            target = reshape_target(have, wanted, sizes) if node.op_type == "Reshape" else _expand_target(have, wanted)
            if target is not None:
                node.replace_input_with(1, constant(graph, target))
                node.attributes.pop("allowzero", None)


def reshape_target(have: Sequence[Size], wanted: Sequence[Size], sizes: Sizes) -> tuple[int, ...] | None:
    """The shape as numbers; None where some size must be computed."""
    target: list[int] = []
    for axis, size in enumerate(wanted):
        if isinstance(size, int) and size > 0:
            target.append(size)
        elif size is not None and size != 0 and axis < len(have) and have[axis] == size:
            target.append(0)
        elif -1 not in target:
            target.append(-1)
        else:
            return None
    others = [size for size, number in zip(wanted, target, strict=True) if number != -1]
    if -1 in target and not all(sizes.is_positive(size) for size in others):
        return None
    return tuple(target)


def _expand_target(have: Sequence[Size], wanted: Sequence[Size]) -> tuple[int, ...] | None:
    before = (1,) * (len(wanted) - len(have)) + tuple(have)
    target: list[int] = []
    for old, new in zip(before, wanted, strict=True):
        if new is not None and old == new:
            target.append(1)
        elif isinstance(new, int):
            target.append(new)
        else:
            return None
    return tuple(target)


def _keep_own_axes(node: ir.Node, sizes: Sizes) -> None:
    """Where the shape of an Expand ends in the last sizes of what is expanded, ones say the same."""
    rank = len(sizes.of(first_input(node)) or ())
    shape = maker(node.inputs[1], "Concat")
    own = maker(shape.inputs[-1], "Shape") if shape is not None else None
    if shape is None or own is None or own.inputs[0] is not node.inputs[0]:
        return
    start, end = own.attributes.get_int("start", 0), own.attributes.get_int("end", rank)
    if 0 <= start < end == rank:
        assert isinstance(node.graph, ir.Graph)
        ones = constant(node.graph, [1] * (end - start))
        node.replace_input_with(1, insert(node, "Concat", [*shape.inputs[:-1], ones], {"axis": 0}))


def _sizes_behind_expand(node: ir.Node, sizes: Sizes) -> tuple[Size, ...] | None:
    """The sizes behind an Expand of which only the shape that it is given tells; None where they may be others."""
    have, told = sizes.all_of(first_input(node)), _told_sizes(node.inputs[1], sizes)
    if have is None or told is None or len(told) > len(have):
        return None
    rows = zip(have, (*[1] * (len(have) - len(told)), *told), strict=True)
    return have if all(size in (1, old) for old, size in rows) else None


def _told_sizes(shape: ir.Value | None, sizes: Sizes) -> tuple[int | str, ...] | None:
    """The elements of a shape that is joined from single sizes."""
    joined = maker(shape, "Concat")
    found: list[int | str] = []
    for part in joined.inputs if joined is not None else ():
        numbers, reading = whole_numbers(part), maker(part, "Shape")
        size = None if reading is None else size_read(reading, sizes)
        if numbers is None and size is None:
            return None
        found += [size] if numbers is None and size is not None else numbers or ()
    return tuple(found) if joined is not None else None


def reshaped(before: ir.Node, value: ir.Value, wanted: Sequence[Size], sizes: Sizes) -> ir.Value | None:
    """The value with these sizes; None where a size is neither known nor that of an input."""
    have = sizes.of(value)
    assert isinstance(before.graph, ir.Graph)
    if have is not None and tuple(have) == tuple(wanted):
        return value
    target = None if have is None else reshape_target(have, wanted, sizes)
    shape = constant(before.graph, target) if target is not None else _computed_shape(before, wanted, sizes)
    if shape is None:
        return None
    # a computed size may be 0, and means it
    attributes = {} if target is not None else {"allowzero": 1}
    return insert(before, "Reshape", [value, shape], attributes, axes=wanted, like=value)


def _computed_shape(before: ir.Node, wanted: Sequence[Size], sizes: Sizes) -> ir.Value | None:
    assert isinstance(before.graph, ir.Graph)
    parts: list[ir.Value] = []
    for size in wanted:
        source = sizes.source(size)
        if source is not None:
            start = {"start": source[1], "end": source[1] + 1}
            parts.append(insert(before, "Shape", [source[0]], start, axes=[1]))
        elif isinstance(size, int) and size > 0:
            parts.append(constant(before.graph, [size]))
        else:
            return None
    return insert(before, "Concat", parts, {"axis": 0}, axes=[len(parts)])
