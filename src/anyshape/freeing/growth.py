"""A value of fixed size made to follow a dim: as a formula, by growing what it is computed from, or as part of a table.

Nothing that exists is changed: the grown value is a new one, beside the old, which goes if nobody else needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.freeing.constant_patterns import is_uniform
from anyshape.freeing.growth_formulas import Wants, formula
from anyshape.freeing.records import StatePinnedError
from anyshape.freeing.walk import Walk
from anyshape.sizes.expressions import ONE, Shape, Size, is_number, number, spelled


def grow_input(walk: Walk, node: ir.Node, place: int, wants: Wants, *, broadcasts: bool) -> None:
    """Replace an input of a node by one that has these sizes (or 1, where the node broadcasts)."""
    value = node.inputs[place]
    assert value is not None
    new = grown(walk, node, value, wants, broadcasts=broadcasts)
    if new is not value:
        sizes = ", ".join(f"axis {axis} to `{spelled(size)}`" for axis, size in wants.items())
        walk.replace(node, place, new, f"operand `{value.name}` grows along {sizes}")


def grown(walk: Walk, node: ir.Node, value: ir.Value, wants: Wants, *, broadcasts: bool) -> ir.Value:
    """The value with these sizes, for the sake of `node`; or 1 instead of them, where the user broadcasts."""
    shape = walk.shape(value)
    assert shape is not None
    wants = {axis: size for axis, size in wants.items() if shape[axis] != size}
    if broadcasts:
        wants = {axis: size for axis, size in wants.items() if shape[axis] != 1}
    if wants and value in walk.origins:
        origin, before = walk.origins[value]
        return grown(walk, node, origin, {**before, **wants}, broadcasts=broadcasts)
    key = (walk.builder.graph, value, tuple(sorted(wants.items())), broadcasts)
    if wants and key not in walk.grown:
        _refuse_other_sizes(walk, node, value, shape, wants)
        walk.grown[key] = _made(walk, node, value, wants, broadcasts=broadcasts)
        walk.origins[walk.grown[key]] = (value, wants)
    return walk.grown[key] if wants else value


def _refuse_other_sizes(walk: Walk, node: ir.Node, value: ir.Value, shape: Shape, wants: Wants) -> None:
    for axis, size in wants.items():
        if not is_number(shape[axis]):
            why = f"`{value.name}` has `{spelled(shape[axis])}` on axis {axis}, not `{spelled(size)}`"
            raise walk.pinned(node, why, size)
        if int(shape[axis]) not in (1, walk.at_file(size)):
            why = f"`{value.name}` has {shape[axis]} on axis {axis}, where `{spelled(size)}` is {walk.at_file(size)}"
            raise walk.pinned(node, why, size)


def _made(walk: Walk, node: ir.Node, value: ir.Value, wants: Wants, *, broadcasts: bool) -> ir.Value:
    shape = walk.shape(value) or ()
    inner = {axis: size for axis, size in wants.items() if shape[axis] != 1}
    new = _larger(walk, node, value, inner) if inner else value
    if broadcasts:
        return new
    shape = walk.shape(new) or ()
    flat = {axis: size for axis, size in wants.items() if shape[axis] == 1}
    return _repeated(walk, new, shape, flat) if flat else new


def _repeated(walk: Walk, value: ir.Value, shape: Shape, wants: Wants) -> ir.Value:
    """Along axes of size 1; a 0 that the file had there once can also be the first of 0, 1, 2, ..."""
    array = walk.constant(value)
    if len(wants) == 1 and array is not None and array.dtype == np.int64 and not array.any():
        ((axis, size),) = wants.items()
        if walk.at_file(size) == 1 and walk.chooser.choose((False, True)):
            ramp = walk.builder.ramp(size, axis, len(shape))
            return walk.builder.expanded(
                ramp,
                tuple(size if a == axis else ONE for a in range(len(shape))),
                {a: s for a, s in enumerate(shape) if a != axis and s != 1},
            )
    return walk.builder.expanded(value, shape, wants)


def _larger(walk: Walk, node: ir.Node, value: ir.Value, wants: Wants) -> ir.Value:
    """A formula first, since it has no limit; then the origin of the value; a table last."""
    from anyshape.freeing.push_pushing import grown_backwards

    array = walk.constant(value)
    merged = next((axis for axis, size in wants.items() if len(walk.factors.order(size)) > 1), None)
    if array is not None and merged is not None and not is_uniform(array, merged):
        return _regrouped(walk, node, array, wants, merged)
    new = formula(walk, array, wants) if array is not None else None
    if new is None and value.producer() is not None:
        new = grown_backwards(walk, value, wants)
    if new is None and (array is not None or value.const_value is not None):
        new = _table(walk, value, wants)
    if new is None:
        axis, size = next(iter(wants.items()))
        kind = "the input" if value.is_graph_input() else "the computed"
        number_there = (walk.shape(value) or ())[axis]
        why = f"{kind} `{value.name}` has {number_there} on axis {axis} for `{spelled(size)}`"
        trouble = walk.pinned(node, why, size)
        raise StatePinnedError(trouble, walk.states[value], wants) if value in walk.states else trouble
    return new


def _regrouped(walk: Walk, node: ir.Node, array: Any, wants: Wants, axis: int) -> ir.Value:
    """Along an axis that is a product, as `batch*heads`, each factor grows by itself."""
    factors = walk.factors.order(wants[axis])
    sizes = [walk.at_file(size) or 1 for size in factors]
    apart = walk.builder.constant(array.reshape(*array.shape[:axis], *sizes, *array.shape[axis + 1 :]))
    inner = {axis + k: size for k, size in enumerate(factors) if not is_number(size)}
    inner |= {a if a < axis else a + len(factors) - 1: size for a, size in wants.items() if a != axis}
    _refuse_picture(walk, node, apart, inner, wants[axis])
    new = grown(walk, node, apart, inner, broadcasts=False)
    shape = tuple(wants.get(a, number(n)) for a, n in enumerate(array.shape))
    return walk.builder.node("Reshape", [new, walk.builder.vector(shape)], shape, dtype=new.dtype)


def _refuse_picture(walk: Walk, node: ir.Node, value: ir.Value, wants: Wants, size: Size) -> None:
    """A table over two dims at once, as positions in a picture: a corner of it is no smaller picture."""
    array = walk.constant(value)
    varying = [axis for axis in wants if not is_uniform(array, axis)]
    if len(varying) > 1 and formula(walk, array, wants) is None:
        dims = " and ".join(sorted(f"`{symbol.name}`" for symbol in size.free_symbols))
        raise walk.pinned(node, f"a table of {array.size} entries stands for `{spelled(size)}`, over {dims}", size)


# ---- tables


def _table(walk: Walk, value: ir.Value, wants: Wants) -> ir.Value:
    """The first entries along each axis; there are no more than the file has."""
    array = walk.constant(value)
    same = [axis for axis in wants if array is not None and is_uniform(array, axis)]
    if same:
        value = walk.builder.constant(array[tuple(slice(1) if a in same else slice(None) for a in range(array.ndim))])
        wants = {axis: size for axis, size in wants.items() if axis not in same}
    shape = list(walk.shape(value) or ())
    for axis, size in wants.items():
        shape[axis] = size
    new = sliced(walk, value, {axis: (number(0), size) for axis, size in wants.items()}, tuple(shape))
    for axis, size in wants.items():
        rows = (walk.shape(value) or ())[axis]
        walk.bound(size, int(rows), f"the table `{value.name}` has {rows} entries along axis {axis}", new)
    return new


def sliced(walk: Walk, value: ir.Value, parts: Mapping[int, tuple[Size, Size]], shape: Shape) -> ir.Value:
    """From start to end along each of these axes."""
    build = walk.builder
    starts = build.vector([start for start, _ in parts.values()])
    ends = build.vector([end for _, end in parts.values()])
    axes = build.constant(np.array(list(parts), np.int64))
    return build.node("Slice", [value, starts, ends, axes], shape, dtype=value.dtype)
