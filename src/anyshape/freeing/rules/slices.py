"""Slice and Split along an axis that is free: positions that count from the end, or are parts of the whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import sympy

from anyshape.freeing.walk import Rule, Shapes, Walk, axes_of
from anyshape.onnxfile.graph import attribute
from anyshape.sizes.expressions import Shape, Size, is_number, number, spelled

_END = np.iinfo(np.int64).max
_FAR = 2**31 - 1
"""From here on a number says "up to the end": positions may be int32, too."""


def slice_(walk: Walk, node: ir.Node) -> Shapes:
    shape = walk.shape(node.inputs[0])
    if shape is None or walk.opset < 10:
        return None
    starts, ends = walk.numbers(node.inputs[1]), walk.numbers(node.inputs[2])
    if starts is None or ends is None or not any(walk.is_free(size) for size in shape):
        return None
    axes = axes_of(walk, node, len(shape), 3) or list(range(len(starts)))
    steps = walk.constant(node.inputs[4]) if len(node.inputs) > 4 and node.inputs[4] is not None else None
    strides = [1] * len(starts) if steps is None else [int(step) for step in steps]
    new_starts, new_ends, sizes = list(starts), list(ends), list(shape)
    for k, axis in enumerate(axes):
        if walk.is_free(shape[axis]) and is_number(starts[k]) and is_number(ends[k]):
            parts = _part_of_axis(walk, shape[axis], int(starts[k]), int(ends[k]), strides[k])
            new_starts[k], new_ends[k], sizes[axis] = parts
        else:
            sizes[axis] = None
    _replace_positions(walk, node, 1, starts, new_starts)
    _replace_positions(walk, node, 2, ends, new_ends)
    return [tuple(sizes)] if None not in sizes else None


def _part_of_axis(walk: Walk, size: Size, start: int, end: int, step: int) -> tuple[Size, Size, Size]:
    """Start, end and length along a free axis."""
    n = walk.at_file(size) or 0
    if step < 0:
        whole = start >= n - 1 or start == -1
        length = _ceil_div(size, -step) if whole and end < -n else None
        return number(-1) if whole else number(start), number(end), length
    first = start + n if start < 0 else min(start, n)
    last = end + n if end < 0 else min(end, n)
    begin = (
        walk.chooser.choose(_positions_meant(size, n, first))
        if 0 < start < n and end >= n and first > n // 2
        else (size - (n - first) if start < 0 else number(first))
    )
    if end >= n:
        stop = size
    elif end < 0:
        stop = size + end
    else:
        stop = walk.chooser.choose(_positions_meant(size, n, last))
    written_start = begin if start >= 0 else number(start)
    written_end = number(_END) if stop == size else number(end) if end < 0 else stop
    return _from_the_end(written_start, size), _from_the_end(written_end, size), _ceil_div(stop - begin, step)


def _positions_meant(size: Size, n: int, position: int) -> list[Size]:
    """A position inside: that number, or as far from the end, or half of the whole; what is nearest comes first."""
    found = [number(position), size - (n - position)]
    if 2 * position == n:
        found.append(size / 2)
    return found if position <= n // 2 else [found[1], found[0], *found[2:]]


def _from_the_end(position: Size, size: Size) -> Size:
    """Counted from the end where that needs no computation."""
    back = position - size
    return back if is_number(back) and back < 0 else position


def _ceil_div(length: Size, step: int) -> Size:
    if step == 1:
        return length
    return sympy.floor((length + step - 1) / step)


def _replace_positions(walk: Walk, node: ir.Node, place: int, before: Shape, after: Sequence[Size]) -> None:
    if all(
        a == b or (min(a, b) >= _FAR if is_number(a) and is_number(b) else False)
        for a, b in zip(before, after, strict=True)
    ):
        return
    value = node.inputs[place]
    new = walk.builder.vector(after)
    if value is not None and value.dtype == ir.DataType.INT32:
        capped = [min(size, number(_FAR)) if is_number(size) else size for size in after]
        new = walk.builder.cast(walk.builder.vector(capped), ir.DataType.INT32, (number(len(capped)),))
    word = "start" if place == 1 else "end"
    old, now = (", ".join("end" if is_number(s) and s >= _FAR else spelled(s) for s in row) for row in (before, after))
    walk.replace(node, place, new, f"{word} [{old}] became [{now}]")


def split(walk: Walk, node: ir.Node) -> Shapes:
    shape = walk.shape(node.inputs[0])
    if shape is None:
        return None
    axis = int(attribute(node, "axis", 0)) % len(shape)
    size = shape[axis]
    if not walk.is_free(size):
        return None
    if size.is_Symbol and len(node.outputs) == walk.at_file(size) != 1:
        raise walk.pinned(node, f"the file takes `{spelled(size)}` apart into {len(node.outputs)} single entries", size)
    lengths = _part_lengths(walk, node, size)
    if lengths is None:
        return None
    rest = [(*shape[:axis], length, *shape[axis + 1 :]) for length in lengths]
    if walk.opset >= 13:
        node.resize_inputs(2)
        node.attributes.pop("num_outputs", None)
        walk.replace(node, 1, walk.builder.vector(lengths), f"parts became [{', '.join(map(spelled, lengths))}]")
    elif len(set(lengths)) == 1:
        if node.attributes.pop("split", None) is not None:
            walk.note(node, f"parts became equal ones, of `{spelled(lengths[0])}`")
    else:
        _as_slices(walk, node, axis, lengths, rest)
    return rest


def _as_slices(walk: Walk, node: ir.Node, axis: int, lengths: Sequence[Size], shapes: Sequence[Shape]) -> None:
    """Where parts are an attribute, they cannot follow a dim: each becomes a Slice."""
    if any(value.is_graph_output() for value in node.outputs):
        raise walk.pinned(node, "its parts are an attribute, which cannot follow a dim in this opset", sum(lengths))
    whole, start = node.inputs[0], number(0)
    assert whole is not None
    for value, length, shape in zip(list(node.outputs), lengths, shapes, strict=True):
        part = walk.builder.sliced(whole, {axis: (start, start + length)}, shape)
        value.replace_all_uses_with(part)
        start += length
    walk.note(node, f"parts became slices of [{', '.join(map(spelled, lengths))}]")


def _part_lengths(walk: Walk, node: ir.Node, size: Size) -> list[Size] | None:
    """Equal parts stay equal; of different ones the longest takes what is left."""
    written = attribute(node, "split")
    if written is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        numbers = walk.numbers(node.inputs[1])
        if numbers is None or not all(is_number(n) for n in numbers):
            return None
        written = [int(n) for n in numbers]
    count = len(node.outputs)
    if written is None or len(set(written)) == 1:
        return [size / count] * count
    longest = max(range(count), key=lambda k: written[k])
    others = sum(written) - written[longest]
    return [size - others if k == longest else number(n) for k, n in enumerate(written)]


RULES: dict[str, Rule] = {"Slice": slice_, "Split": split}
