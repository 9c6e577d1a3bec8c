"""A Reshape to known sizes: a constant where it can be told, else put together from the sizes of inputs."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Size, Sizes
from anyshape.conversion.graph.rewrites.reshape_targets import reshape_target
from anyshape.onnxfile.graph import constant, insert


def reshaped(before: ir.Node, value: ir.Value, wanted: Sequence[Size], sizes: Sizes) -> ir.Value | None:
    """The value with these sizes; None where a size is neither known nor that of an input."""
    have = sizes.of(value)
    assert isinstance(before.graph, ir.Graph)
    if have is not None and tuple(have) == tuple(wanted):
        return value
    target = None if have is None else reshape_target(have, wanted, sizes)
    shape = constant(before.graph, target) if target is not None else _computed(before, wanted, sizes)
    if shape is None:
        return None
    # a computed size may be 0, and means it
    attributes = {} if target is not None else {"allowzero": 1}
    return insert(before, "Reshape", [value, shape], attributes, axes=wanted, like=value)


def _computed(before: ir.Node, wanted: Sequence[Size], sizes: Sizes) -> ir.Value | None:
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
