"""One of several along an axis, chosen by one node: a Gather instead of a Slice of length one and a Squeeze.

An axis of size 1 that is added before a Transpose and taken away behind it is left out, too.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Sizes
from anyshape.onnxfile.graph import (
    constant,
    first_input,
    insert,
    maker,
    nodes_of,
    only_user,
    permutation,
    replace,
    whole_numbers,
)


def shorten(graph: ir.Graph, sizes: Sizes) -> None:
    for node in nodes_of(graph, "Squeeze"):
        _without_added_axis(node, sizes) or _gathered(node, sizes)


def _without_added_axis(node: ir.Node, sizes: Sizes) -> bool:
    """Squeeze(Transpose(Unsqueeze(x))) of the same axis becomes Transpose(x)."""
    moved = maker(node.inputs[0], "Transpose")
    added = maker(first_input(moved), "Unsqueeze") if moved is not None else None
    if moved is None or added is None or only_user(first_input(node), "Squeeze") is None:
        return False
    order = permutation(moved)
    put = _one_axis(added, len(order))
    taken = _one_axis(node, len(order))
    if put is None or taken is None or order[taken] != put:
        return False
    rest = [axis - (axis > put) for axis in order if axis != put]
    result = node.outputs[0]
    made = insert(node, "Transpose", [added.inputs[0]], {"perm": rest}, axes=sizes.of(result), like=result)
    replace(result, made)
    return True


def _gathered(node: ir.Node, sizes: Sizes) -> bool:
    """Squeeze(Slice(x, i, i + 1)) becomes Gather(x, i)."""
    cut = maker(node.inputs[0], "Slice")
    known = sizes.of(cut.inputs[0]) if cut is not None else None
    if cut is None or known is None or only_user(first_input(node), "Squeeze") is None:
        return False
    start, end, axes, step = (whole_numbers(value) for value in (*cut.inputs[1:], *[None] * 4)[:4])
    axis = _one_axis(node, len(known))
    if axis is None or start is None or end is None or axes is None or len(axes) != 1 or axes[0] % len(known) != axis:
        return False
    length = known[axis]
    if start[0] < 0 or end[0] != start[0] + 1 or step not in (None, (1,)) or not isinstance(length, int):
        return False
    if start[0] >= length:  # nothing is left of it
        return False
    assert isinstance(node.graph, ir.Graph)
    index = constant(node.graph, start[0])
    result = node.outputs[0]
    made = insert(node, "Gather", [cut.inputs[0], index], {"axis": axis}, axes=sizes.of(result), like=result)
    replace(result, made)
    return True


def _one_axis(node: ir.Node, rank: int) -> int | None:
    """The one axis that an Unsqueeze or a Squeeze of this rank (the larger one) names."""
    axes = whole_numbers(node.inputs[1]) if len(node.inputs) > 1 else None
    return axes[0] % rank if axes is not None and len(axes) == 1 else None
