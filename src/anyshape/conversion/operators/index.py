"""Places in a tensor given by sizes or values: read, written, scattered to, counted, and slices that end at a value.

Torch takes a size among them for a plain number, and reads a value into Python, by which it then decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import SymInt, Tensor

from anyshape.conversion.control_flow.forks import is_named_size
from anyshape.conversion.control_flow.samples import has_unknown_length
from anyshape.conversion.operators.onnx_words import (
    INT64,
    as_vector,
    counted,
    from_front,
    literal,
    number,
    op,
    rank,
    size_of,
    vector,
    whole,
)
from anyshape.conversion.operators.repair import Answer, Repair, Used, answering, arange, holds_size, is_size
from anyshape.conversion.speed.operator_table import define

# ---- what stands in a trace, and its shapes


def _shape_of_taken(x: Tensor, index: Tensor, dim: int) -> Tensor:
    axes = range(x.ndim)
    wider = (a if is_size(a) or a != 1 else b for a, b in zip(x.shape, index.shape, strict=True))
    return x.new_empty([index.shape[dim] if axis == dim else size for axis, size in zip(axes, wider, strict=True)])


define("anyshape_sizes::take_along", "(Tensor x, Tensor index, int dim) -> Tensor", _shape_of_taken)


def _shape_of_triangle(rows: Any, columns: Any, offset: Any, lower: bool) -> Tensor:
    """As many as there are on that side of the diagonal of a square; of other shapes nobody knows before."""
    if not isinstance(rows, int | SymInt) or str(rows) != str(columns):
        return torch.empty((2, torch.library.get_ctx().new_dynamic_size()), dtype=torch.int64)
    edge = offset if lower else -offset
    below, beyond = rows + edge, rows - edge - 1
    many = below * (below + 1) // 2 if edge <= 0 else rows * rows - beyond * (beyond + 1) // 2
    return torch.empty((2, many), dtype=torch.int64)


_TRIANGLE = "(SymInt rows, SymInt columns, SymInt offset, bool lower) -> Tensor"
define("anyshape_sizes::triangle", _TRIANGLE, _shape_of_triangle)


# ---- places by sizes: `x[:, n - 1] = 0`, `take_along_dim`, `one_hot(x, n)`, triangles, diagonals, Kronecker's product


def _write_at_size(used: Used, x: Tensor, place: Any, value: Any) -> Any:
    """A view of the place, then a copy into it: what `x[place] = value` is where nothing is gathered."""
    parts = place if isinstance(place, tuple) else (place,)
    plain = all(part is None or part is Ellipsis or isinstance(part, int | slice | SymInt) for part in parts)
    if not plain or not holds_size(parts):
        return NotImplemented
    used("x[size] = value: the place by the size at run time")
    view = x[place]
    if not isinstance(value, Tensor):
        return view.fill_(value)
    while value.ndim > view.ndim:
        value = value.squeeze(0)
    return view.copy_(value)


def _take_along(used: Used, input: Tensor, indices: Tensor, dim: int | None = None) -> Any:  # noqa: A002
    """A gather whose two tensors are broadcast at run time."""
    if not holds_size(input.shape, indices.shape):
        return NotImplemented
    used("torch.take_along_dim: shapes at run time")
    if dim is None:
        return torch.gather(input.reshape(-1), 0, indices.reshape(-1))
    if input.ndim != indices.ndim:
        return NotImplemented
    return torch.ops.anyshape_sizes.take_along(input, indices, dim % input.ndim)


def _one_hot(used: Used, tensor: Tensor, num_classes: Any = -1) -> Any:
    if not is_size(num_classes):
        return NotImplemented
    used("F.one_hot: classes by the size at run time")
    return (tensor.unsqueeze(-1) == arange(num_classes, device=tensor.device)).to(torch.int64)


def _places_of_triangle(
    name: str,
    lower: bool,
    used: Used,
    row: Any,
    col: Any,
    offset: Any = 0,
    *,
    dtype: Any = torch.int64,
    device: Any = None,
    **_: Any,
) -> Any:
    if not holds_size((row, col, offset)):
        return NotImplemented
    used(f"torch.{name}: places by the size at run time")
    return torch.ops.anyshape_sizes.triangle(row, col, offset, lower).to(device=device, dtype=dtype)


def _fill_diagonal(used: Used, x: Tensor, fill_value: Any, wrap: bool = False) -> Any:
    if x.ndim != 2 or wrap or not holds_size(x.shape):
        return NotImplemented
    used("x.fill_diagonal_: shape at run time")
    rows, columns = (arange(size, device=x.device) for size in x.shape)
    filled = torch.where(rows[:, None] == columns, torch.full((), fill_value, dtype=x.dtype, device=x.device), x)
    return x.copy_(filled)


def _kronecker(used: Used, input: Tensor, other: Tensor) -> Any:  # noqa: A002
    """Every value of the one times all of the other: a product over twice as many axes, joined in pairs."""
    if not holds_size(input.shape, other.shape):
        return NotImplemented
    used("torch.kron: shapes at run time")
    axes = max(input.ndim, other.ndim)
    left, right = (x[(None,) * (axes - x.ndim)] for x in (input, other))
    wide = left.reshape([size for axis in left.shape for size in (axis, 1)])
    narrow = right.reshape([size for axis in right.shape for size in (1, axis)])
    return (wide * narrow).reshape([a * b for a, b in zip(left.shape, right.shape, strict=True)])


_ANSWERS: dict[tuple[Any, str], Answer] = {
    (Tensor, "__setitem__"): _write_at_size,
    (torch, "take_along_dim"): _take_along,
    (Tensor, "take_along_dim"): _take_along,
    (F, "one_hot"): _one_hot,
    (torch, "tril_indices"): partial(_places_of_triangle, "tril_indices", True),
    (torch, "triu_indices"): partial(_places_of_triangle, "triu_indices", False),
    (Tensor, "fill_diagonal_"): _fill_diagonal,
    (torch, "kron"): _kronecker,
    (Tensor, "kron"): _kronecker,
}
INDEXING = Repair("indexing by sizes", answering(_ANSWERS))


# ---- a write to a place that a value gives: `cache[:, position] = key`, `cache[:, at : at + 1] = key`

# Recognised: one integer tensor without axes as a place or as a bound of a slice, beside plain slices and numbers. Put
# there: all places of that axis are numbered, and those that the tensor names take the value. That is the same for
# every place, counted from either end.

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def _is_place(part: Any) -> bool:
    return isinstance(part, Tensor) and part.ndim == 0 and part.dtype in _WHOLE


def _is_range(part: Any) -> bool:
    bounded = isinstance(part, slice) and part.step in (None, 1)
    return bounded and (_is_place(part.start) or _is_place(part.stop))


def _is_plain(part: Any) -> bool:
    if isinstance(part, slice):
        return not any(isinstance(bound, Tensor) for bound in (part.start, part.stop, part.step))
    return part is None or part is Ellipsis or (isinstance(part, int | SymInt) and not isinstance(part, bool))


def _axis_of(parts: Sequence[Any], chosen: int, view: Tensor) -> int:
    """The axis of the view that stands for the chosen part; what is behind an ellipsis is counted from the end."""
    before, after = parts[:chosen], parts[chosen + 1 :]
    if Ellipsis in before:
        return view.ndim - 1 - sum(isinstance(part, slice) or part is None for part in after)
    return sum(isinstance(part, slice) or part is None for part in before)


def _from_start(bound: Any, length: Any, otherwise: Any) -> Any:
    """A bound of a slice as a place counted from the start."""
    if bound is None:
        return otherwise
    bound = bound if isinstance(bound, Tensor) else torch.full((), bound, dtype=torch.int64)
    return torch.where(bound < 0, bound + length, bound).clamp(min=0)


def _write_at_value(view: Tensor, axis: int, part: Any, value: Any) -> None:
    length = view.shape[axis]
    places = torch.arange(length, device=view.device)
    if not isinstance(value, Tensor):
        value = torch.full((), value, dtype=view.dtype, device=view.device)
    if isinstance(part, slice):
        first, end = _from_start(part.start, length, 0), _from_start(part.stop, length, length)
        written = (places >= first) & (places < end)
        spread = _value_at_places(value, view, axis, places - first)
    else:
        written = places == torch.where(part < 0, part + length, part)
        # the axis of a single place is not in the value
        spread = value if value.ndim < view.ndim - axis else value.unsqueeze(value.ndim - (view.ndim - 1 - axis))
    at = written.reshape([-1 if a == axis else 1 for a in range(view.ndim)])
    view.copy_(torch.where(at, spread.to(view.dtype), view))


def _value_at_places(value: Tensor, view: Tensor, written_axis: int, index: Tensor) -> Tensor:
    """The value with its own run of places moved to where it is written; what broadcasts stays as it is."""
    own = value.ndim - (view.ndim - written_axis)
    if own < 0 or (isinstance(value.shape[own], int) and value.shape[own] == 1):
        return value
    # one more, so that a value without any place can be numbered, too
    more = value.new_zeros([1 if axis == own else size for axis, size in enumerate(value.shape)])
    return torch.cat([value, more], dim=own).index_select(own, index.clamp(0, value.shape[own]))


def _write_where_value_says(used: Used, x: Tensor, place: Any, value: Any) -> Any:
    parts = place if isinstance(place, tuple) else (place,)
    chosen = [i for i, part in enumerate(parts) if _is_place(part) or _is_range(part)]
    if len(chosen) != 1 or not all(_is_plain(part) for i, part in enumerate(parts) if i != chosen[0]):
        return NotImplemented
    used("x[place] = value: the place by its value at run time")
    view = x[tuple(slice(None) if i == chosen[0] else part for i, part in enumerate(parts))]
    _write_at_value(view, _axis_of(parts, chosen[0], view), parts[chosen[0]], value)
    return None


WRITTEN_PLACES = Repair("written places", answering({(Tensor, "__setitem__"): _write_where_value_says}))


# ---- a slice whose end is a value of the call: `x[:, :int(lengths.max())]`

# Recognised: a border that a trace does not know and that leaves a length it does not know. Torch computes that length
# in one way when it traces and in another when it translates, and fails between them. Put there: an operator that is
# ONNX's Slice, whose borders are cut to the axis as Python's are, with a length of its own.


def _cut_at_values(used: Used, tensor: Tensor, index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    # an ellipsis, None or a tensor among the parts moves the axes
    if not all(isinstance(part, slice) for part in parts) or not any(map(_ends_at_value, parts)):
        return NotImplemented
    used("a slice up to a value: cut in the file")
    for axis, part in enumerate(parts):
        if _ends_at_value(part):
            start = 0 if part.start is None else part.start
            end = tensor.shape[axis] if part.stop is None else part.stop
            tensor = torch.ops.anyshape.cut(tensor, axis, start, end)
        elif part != slice(None):
            tensor = tensor[(slice(None),) * axis + (part,)]
    return tensor


def _ends_at_value(part: slice) -> bool:
    borders = [number for number in (part.start, part.stop) if is_size(number)]
    return has_unknown_length(part) and not all(map(is_named_size, borders))


VALUE_SLICES = Repair("slices up to a value", answering({(Tensor, "__getitem__"): _cut_at_values}))

# ---- ONNX: places by sizes


def _onnx_take_along(x: ir.Value, index: ir.Value, dim: int) -> Any:
    """Both are broadcast against each other in all axes but one, then gathered along it."""
    axes = range(rank(x))
    both = [op.Max(size_of(x, axis), size_of(index, axis)) for axis in axes]
    wide = op.Expand(x, vector([size_of(x, dim) if axis == dim else both[axis] for axis in axes]))
    places = op.Expand(index, vector([size_of(index, dim) if axis == dim else both[axis] for axis in axes]))
    return op.GatherElements(wide, places, axis=dim)


def _onnx_triangle(rows: Any, columns: Any, offset: Any, lower: bool) -> Any:
    """The places below or above a diagonal, row by row."""
    row = op.Unsqueeze(counted(as_vector(rows)), whole(1))
    column = op.Unsqueeze(counted(as_vector(columns)), whole(0))
    ahead = op.Sub(column, row)
    inside = op.LessOrEqual(ahead, as_vector(offset)) if lower else op.GreaterOrEqual(ahead, as_vector(offset))
    return op.Cast(op.NonZero(inside), to=INT64)


# ---- ONNX: values written to places: scatter, scatter_add, scatter_reduce, index_reduce, diagonals, overlapping frames

# torch allows more values than places and means over what fell on one place; ONNX's ScatterElements knows neither.

_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "add": "add", "multiply": "mul"}


def _values_with_places(source: ir.Value, index: ir.Value) -> Any:
    """The values that have a place: torch ignores those beyond the index."""
    if source.shape is not None and index.shape is not None and source.shape == index.shape:
        return source
    axes = rank(index)
    return op.Slice(source, whole(*[0] * axes), op.Shape(index), whole(*range(axes)))


def _places_and_values(index: ir.Value, source: ir.Value) -> tuple[Any, Any]:
    places = op.Cast(_with_axis(index), to=INT64)
    return places, _with_axis(source) if rank(index) == 0 else _values_with_places(source, index)


def _with_axis(value: ir.Value) -> Any:
    return op.Reshape(value, whole(-1)) if rank(value) == 0 else value


def _scatter_source(x: ir.Value, dim: int, index: ir.Value, src: ir.Value, *, reduce: str | None = None) -> Any:
    places, values = _places_and_values(index, src)
    if x.dtype == ir.DataType.BOOL and reduce:
        raise NotImplementedError("reducing scatter of booleans")
    written = op.ScatterElements(_with_axis(x), places, values, axis=dim, reduction=_reduction(reduce))
    return _of_rank_of(x, written)


def _reduction(reduce: str | None) -> str:
    return _REDUCTIONS[reduce] if reduce else "none"


def _of_rank_of(x: ir.Value, written: ir.Value) -> ir.Value:
    return op.Reshape(written, whole()) if rank(x) == 0 else written


def _scatter_number(x: ir.Value, dim: int, index: ir.Value, value: Any, *, reduce: str | None = None) -> Any:
    spread = op.Expand(number(value, x), op.Shape(_with_axis(index)))
    base, places = _with_axis(x), op.Cast(_with_axis(index), to=INT64)
    return _of_rank_of(x, op.ScatterElements(base, places, spread, axis=dim, reduction=_reduction(reduce)))


def _neutral_value(reduce: str, dtype: ir.DataType | None) -> float:
    """What changes nothing in a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    kind = (dtype or ir.DataType.FLOAT).numpy()
    if kind.kind == "f":
        return float("-inf") if reduce == "amax" else float("inf")
    bounds = np.iinfo(kind)
    return int(bounds.min if reduce == "amax" else bounds.max)


def _scatter_reduce(
    x: ir.Value, dim: int, index: ir.Value, src: ir.Value, reduce: str, *, include_self: bool = True
) -> Any:
    return _scattered_with(x, dim, *_places_and_values(index, src), reduce, include_self=include_self)


def _scattered_with(x: ir.Value, dim: int, places: Any, values: Any, reduce: str, *, include_self: bool) -> Any:
    base = _with_axis(x)
    if not include_self:
        neutral = op.Expand(number(_neutral_value(reduce, x.dtype), x), op.Shape(places))
        base = op.ScatterElements(base, places, neutral, axis=dim)
    name = _REDUCTIONS["sum" if reduce == "mean" else reduce]
    written = op.ScatterElements(base, places, values, axis=dim, reduction=name)
    if reduce == "mean":
        one = number(1, x)
        had = op.Expand(one if include_self else number(0, x), op.Shape(base))
        many = op.ScatterElements(had, places, op.Expand(one, op.Shape(places)), axis=dim, reduction="add")
        written = _mean_of(written, op.Max(many, one), x)
    return _of_rank_of(x, written)


def _mean_of(total: Any, many: Any, like: ir.Value) -> Any:
    """Of whole numbers, rounded down."""
    is_float = like.dtype is None or like.dtype.is_floating_point()
    return op.Div(total if is_float else op.Sub(total, op.Mod(total, many)), many)


def _index_reduce(
    x: ir.Value, dim: int, index: ir.Value, source: ir.Value, reduce: str, *, include_self: bool = True
) -> Any:
    """Each slice of the source goes to the slice that the index names."""
    axis, axes = from_front(dim, x), rank(source)
    column = op.Reshape(op.Cast(index, to=INT64), whole(*(-1 if a == axis else 1 for a in range(axes))))
    return _scattered_with(x, axis, op.Expand(column, op.Shape(source)), source, reduce, include_self=include_self)


def _write_diagonal(x: ir.Value, source: ir.Value, offset: Any = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal is where the one place minus the other is the offset; its values stand there in order."""
    first, second, axes = from_front(dim1, x), from_front(dim2, x), rank(x)
    rest = [axis for axis in range(axes) if axis not in (first, second)]
    shift = number(offset, ir.Value(name="places", type=ir.TensorType(INT64)))
    row = op.Unsqueeze(counted(size_of(x, first)), whole(1))
    column = op.Unsqueeze(counted(size_of(x, second)), whole(0))
    on_it = op.Equal(op.Sub(column, row), shift)
    length = op.Sub(size_of(source, rank(source) - 1), whole(1))
    along = op.Max(op.Min(op.Min(row, column), length), whole(0))
    spread = op.Gather(source, along, axis=rank(source) - 1)  # (rest..., first, second)
    order = [*rest, first, second]
    back = [order.index(axis) for axis in range(axes)]
    mask = op.Expand(on_it, op.Shape(spread))
    return op.Where(op.Transpose(mask, perm=back), op.Transpose(spread, perm=back), x)


def _read_diagonal(x: ir.Value, offset: Any = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """By its places in the two axes as one: a product with a mask would carry NaN from beside it."""
    axes, first, second = rank(x), from_front(dim1, x), from_front(dim2, x)
    rest = [axis for axis in range(axes) if axis not in (first, second)]
    high, wide, shift = size_of(x, first), size_of(x, second), as_vector(offset)
    down, right = op.Max(op.Neg(shift), whole(0)), op.Max(shift, whole(0))
    length = op.Max(op.Min(op.Sub(high, down), op.Sub(wide, right)), whole(0))
    start = op.Add(op.Mul(down, wide), right)
    places = op.Add(start, op.Mul(counted(length), op.Add(wide, whole(1))))
    flat = op.Reshape(op.Transpose(x, perm=[*rest, first, second]), whole(*[0] * len(rest), -1))
    return op.Gather(flat, places, axis=len(rest))


def _write_in_a_row(x: ir.Value, index: ir.Value, source: ir.Value, accumulate: bool = False) -> Any:
    """Places are counted over all axes in a row."""
    flat, places, values = (op.Reshape(value, whole(-1)) for value in (x, index, source))
    written = op.ScatterElements(flat, places, values, axis=0, reduction="add" if accumulate else "none")
    return op.Reshape(written, op.Shape(x))


def _add_frames(frames: ir.Value, input_sizes: Sequence[Any], dim: int, size: int, step: int) -> Any:
    """The reverse of `unfold`: every frame is added where it was cut out."""
    axes = len(input_sizes)
    axis = dim % axes if axes else 0
    order = [*range(axis + 1), axes, *range(axis + 1, axes)]
    beside = op.Transpose(frames, perm=order)  # each frame's values right behind its number
    kept = [size_of(frames, other) for other in range(axes)]
    in_a_row = op.Reshape(beside, vector([*kept[:axis], -1, *kept[axis + 1 :]]))
    # torch lets the frames of one batch stand for all
    values = op.Expand(in_a_row, vector([*input_sizes[:axis], 1, *input_sizes[axis + 1 :]]))
    starts = op.Mul(op.Unsqueeze(counted(size_of(frames, axis)), whole(1)), whole(step))
    places = op.Add(starts, op.Unsqueeze(counted(size), whole(0)))
    column = op.Reshape(places, whole(*(-1 if a == axis else 1 for a in range(axes))))
    empty = op.Expand(number(0, frames), vector(input_sizes))
    return op.ScatterElements(empty, op.Expand(column, op.Shape(values)), values, axis=axis, reduction="add")


def _places_by_axis(x: ir.Value) -> list[Any]:
    """`x.nonzero(as_tuple=True)`: for each axis the places along it; of a number without axes as of a vector of one."""
    places = op.NonZero(x if rank(x) else op.Reshape(x, whole(-1)))
    return [op.Gather(places, literal(axis), axis=0) for axis in range(max(rank(x), 1))]


def _narrow_from_value(x: ir.Value, dim: int, start: ir.Value, length: int | ir.Value) -> Any:
    """A run of places from one that a tensor holds; a negative one counts from the end."""
    axis, begin = from_front(dim, x), as_vector(op.Cast(start, to=INT64))
    begin = op.Where(op.Less(begin, whole(0)), op.Add(begin, size_of(x, axis)), begin)
    return op.Slice(x, begin, op.Add(begin, as_vector(length)), whole(axis))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "anyshape_sizes::take_along": _onnx_take_along,
    "anyshape_sizes::triangle": _onnx_triangle,
    "aten::scatter.src": _scatter_source,
    "aten::scatter.reduce": _scatter_source,
    "aten::scatter.value": _scatter_number,
    "aten::scatter.value_reduce": _scatter_number,
    "aten::scatter_add": partial(_scatter_source, reduce="add"),
    "aten::scatter_reduce.two": _scatter_reduce,
    "aten::index_reduce": _index_reduce,
    "aten::nonzero_numpy": _places_by_axis,
    "aten::narrow.Tensor": _narrow_from_value,
    "aten::diagonal_scatter": _write_diagonal,
    "aten::diagonal": _read_diagonal,
    "aten::diagonal_copy": _read_diagonal,
    "aten::put": _write_in_a_row,
    "aten::unfold_backward": _add_frames,
    "prims::copy_strided": lambda x, _strides: op.Identity(x),  # how it lies in memory is no matter of a file's
}
