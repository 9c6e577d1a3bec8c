"""Sums and means of what may be empty.

ONNX Runtime leaves an empty input as it is where the axes to reduce are counted from the back: of `[2, 0, 6]` reduced
along axis -1, all 6 are left. Counted from the front, they are reduced.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.onnxfile.graph import constant, first_input, whole_numbers


def count_axes_from_the_front(model: ir.Model) -> None:
    """Change, in place, the axes of reductions; where the number of axes is not known, they stay as they are."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if not node.op_type.startswith("Reduce") or node.domain not in ("", "ai.onnx") or len(node.inputs) < 2:
            continue
        shape, axes = first_input(node).shape, whole_numbers(node.inputs[1])
        if shape is not None and axes and min(axes) < 0:
            node.replace_input_with(1, constant(model.graph, [axis % len(shape) for axis in axes]))
