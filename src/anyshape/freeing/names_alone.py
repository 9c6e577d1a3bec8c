"""The simplest way to free a file: its inputs get names, and its outputs the sizes that runs show.

Nothing is rewritten, so nothing need be known about the operators; it serves where no constant pins a size. Whether
that is so, the checks decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from anyshape.freeing.records import Freed, Wanted
from anyshape.sizes.fit import plus, whole_line
from anyshape.sizes.notation import Sizes

ShapesAt = Callable[[Sizes], Sequence[tuple[int, ...]]]
"""The shapes of the outputs at these sizes, as a run shows them."""


def named(model: ir.Model, wanted: Wanted, sizes: Sizes) -> Freed:
    """A copy of the model with names on its inputs; what its other values and its outputs are is left open."""
    made = model.clone()
    for graph in made.graphs():
        for node in graph:
            for value in node.outputs:
                value.shape = None
    for value in made.graph.inputs:
        if (row := wanted.get(str(value.name))) is not None and value.shape is not None:
            dims = zip(row, value.shape, strict=True)
            value.shape = ir.Shape([size if dim is None else ir.SymbolicDim(dim) for dim, size in dims])
    return Freed(made, sizes, (), (), tuple(() for _ in made.graph.outputs), (), ())


def with_outputs(freed: Freed, shapes_at: ShapesAt) -> Freed:
    """The outputs labelled by what runs at other sizes show, where that is a multiple of one dim and a number."""
    sizes, own = freed.sizes, shapes_at(freed.sizes)
    grown = {dim: [shapes_at({**sizes, dim: size}) for size in _other_sizes(sizes[dim])] for dim in sizes}
    outputs = []
    for index, (value, shape) in enumerate(zip(freed.model.graph.outputs, own, strict=True)):
        seen = {dim: [shapes[index] for shapes in rows] for dim, rows in grown.items()}
        axes = tuple(_axis_label(axis, size, sizes, seen) for axis, size in enumerate(shape))
        value.shape = ir.Shape([int(a) if a is not None and a.isdecimal() else ir.SymbolicDim(a) for a in axes])
        outputs.append(axes)
    return Freed(freed.model, sizes, (), (), tuple(outputs), (), ())


def _other_sizes(size: int) -> tuple[int, int]:
    """Two, since with the file's own size a line goes through any one of them."""
    return 2 * size + 1, 3 * size + 2


def _axis_label(axis: int, size: int, sizes: Sizes, seen: Mapping[str, Sequence[tuple[int, ...]]]) -> str | None:
    """The size of an axis as a number, as `2*batch + 1`, or None where it is neither."""
    moving = [dim for dim, shapes in seen.items() if any(len(s) <= axis or s[axis] != size for s in shapes)]
    if not moving:
        return str(size)
    dim = moving[0]
    if len(moving) > 1 or any(len(shape) <= axis for shape in seen[dim]):
        return None
    grown = tuple(shape[axis] for shape in seen[dim])
    line = whole_line((size, *grown), (sizes[dim], *_other_sizes(sizes[dim])))
    return None if line is None else plus(dim if line[0] == 1 else f"{line[0]}*{dim}", line[1])
