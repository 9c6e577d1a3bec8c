"""A value of fixed size made to follow a dim: as a formula, by growing what it is computed from, or as part of a table.

Nothing that exists is changed: the grown value is a new one, beside the old, which goes if nobody else needs it.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.freeing.constant_patterns import Piece, diagonal_pieces, is_uniform, ramp_step
from anyshape.freeing.push import Wants, grown_backwards
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
        walk.grown[key] = _grown_and_repeated(walk, node, value, wants, broadcasts=broadcasts)
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


def _grown_and_repeated(walk: Walk, node: ir.Node, value: ir.Value, wants: Wants, *, broadcasts: bool) -> ir.Value:
    shape = walk.shape(value) or ()
    inner = {axis: size for axis, size in wants.items() if shape[axis] != 1}
    new = _larger_value(walk, node, value, inner) if inner else value
    if broadcasts:
        return new
    shape = walk.shape(new) or ()
    flat = {axis: size for axis, size in wants.items() if shape[axis] == 1}
    return _repeated_along_ones(walk, new, shape, flat) if flat else new


def _repeated_along_ones(walk: Walk, value: ir.Value, shape: Shape, wants: Wants) -> ir.Value:
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


def _larger_value(walk: Walk, node: ir.Node, value: ir.Value, wants: Wants) -> ir.Value:
    """A formula first, since it has no limit; then the origin of the value; a table last."""
    array = walk.constant(value)
    merged = next((axis for axis, size in wants.items() if len(walk.factors.order(size)) > 1), None)
    if array is not None and merged is not None and not is_uniform(array, merged):
        return _grown_by_factors(walk, node, array, wants, merged)
    new = formula(walk, array, wants) if array is not None else None
    if new is None and value.producer() is not None:
        new = grown_backwards(walk, value, wants, grown)
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


def _grown_by_factors(walk: Walk, node: ir.Node, array: Any, wants: Wants, axis: int) -> ir.Value:
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
    new = walk.builder.sliced(value, {axis: (number(0), size) for axis, size in wants.items()}, tuple(shape))
    for axis, size in wants.items():
        rows = (walk.shape(value) or ())[axis]
        walk.bound(size, int(rows), f"the table `{value.name}` has {rows} entries along axis {axis}", new)
    return new


# ---- formulas: the same everywhere, ramps, or pieces along the diagonal; they have no limit

_WHOLE = "iub"
"""Kinds of dtypes that NumPy has for whole numbers; their formulas are computed in int64."""


def formula(walk: Walk, array: Any, wants: Wants) -> ir.Value | None:
    """The constant for every size, of size 1 along axes where it is the same everywhere; None where it is a table."""
    if array.size == 0:
        return None
    for axis in wants:
        if is_uniform(array, axis):
            array = np.take(array, [0], axis)
    rest = {axis: size for axis, size in wants.items() if array.shape[axis] != 1}
    if not rest:
        return walk.builder.constant(array)
    whole = _ramps(walk, array.astype(np.int64), rest) if _ramp_axis(array, rest) is not None else None
    if whole is None and len(rest) == 2:
        whole = _diagonal(walk, array, rest)
    shape = tuple(rest.get(axis, number(n)) for axis, n in enumerate(array.shape))
    return None if whole is None else walk.builder.cast(whole, ir.DataType.from_numpy(array.dtype), shape)


def _ramp_axis(array: Any, wants: Wants) -> int | None:
    return next((axis for axis in reversed(list(wants)) if ramp_step(array, axis) is not None), None)


def _ramps(walk: Walk, array: Any, wants: Wants) -> ir.Value | None:
    """First + step * (0, 1, 2, ...) along one axis, where `first` and `step` may be ramps along another."""
    axis = _ramp_axis(array, wants)
    if axis is None:
        return None
    size, others = wants[axis], {a: s for a, s in wants.items() if a != axis}
    step = np.asarray(ramp_step(array, axis))
    first = _first_entry(walk, array, axis, size) if not others else formula(walk, np.take(array, [0], axis), others)
    slope = formula(walk, step, others)
    if first is None or slope is None:
        return None
    build, ramp = walk.builder, walk.builder.ramp(size, axis, array.ndim)
    if not (step == 1).all():
        ramp = build.node("Mul", [ramp, slope], _broadcast_shape(walk, ramp, slope))
    zero = walk.constant(first)
    if zero is not None and not zero.any() and zero.size == 1:
        return ramp
    return build.node("Add", [ramp, first], _broadcast_shape(walk, ramp, first))


def _first_entry(walk: Walk, array: Any, axis: int, size: Size) -> ir.Value:
    """The first entry; a ramp that falls to 0 starts at the size - 1 in every size, as that of a flip does."""
    first = np.take(array, [0], axis)
    n = array.shape[axis]
    if array.size == n and n > 2 and array.flat[0] == n - 1 and array.flat[-1] == 0:
        shape = (ONE,) * array.ndim
        return walk.builder.reshaped(walk.builder.size(size - 1), [1] * array.ndim, shape)
    return walk.builder.constant(first)


def _broadcast_shape(walk: Walk, a: ir.Value, b: ir.Value) -> Shape:
    """The shape of two values that broadcast, both of the same rank."""
    pairs = zip(walk.shape(a) or (), walk.shape(b) or (), strict=True)
    return tuple(y if x == 1 else x for x, y in pairs)


def _diagonal(walk: Walk, array: Any, wants: Wants) -> ir.Value | None:
    (rows, size), (columns, other) = sorted(wants.items())
    pieces = diagonal_pieces(array, rows, columns) if size == other else None
    if pieces is None:
        return None
    build, rank = walk.builder, array.ndim
    shape = tuple(wants.get(axis, ONE) for axis in range(rank))
    down, along = build.ramp(size, rows, rank), build.ramp(size, columns, rank)
    distance = build.node("Sub", [down, along], shape)
    return _joined_pieces(walk, pieces, distance, array.dtype, shape)


def _joined_pieces(walk: Walk, pieces: tuple[Piece, ...], distance: ir.Value, dtype: Any, shape: Shape) -> ir.Value:
    """Where(distance < start, before, after), once for each start but the first."""
    build = walk.builder
    plain = np.dtype(np.int64 if dtype.kind in _WHOLE else np.float64 if dtype == np.float64 else np.float32)
    kind = ir.DataType.from_numpy(plain)
    result = _piece(walk, pieces[-1], distance, plain, shape)
    for before, after in reversed(list(itertools.pairwise(pieces))):
        start = build.constant(np.array(after.start, np.int64))
        less = build.node("Less", [distance, start], shape, dtype=ir.DataType.BOOL)
        result = build.node("Where", [less, _piece(walk, before, distance, plain, shape), result], shape, dtype=kind)
    return result


def _piece(walk: Walk, piece: Piece, distance: ir.Value, dtype: Any, shape: Shape) -> ir.Value:
    build = walk.builder
    if piece.slope == 0:
        return build.constant(np.asarray(piece.first).astype(dtype))
    slope, first = (build.constant(np.array(n, np.int64)) for n in (piece.slope, piece.first))
    line = build.node("Add", [build.node("Mul", [distance, slope], shape), first], shape)
    return build.cast(line, ir.DataType.from_numpy(dtype), shape)
