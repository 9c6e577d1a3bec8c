"""Places in a tensor given by sizes or values: read, written, counted, and slices that end at a value.

Torch takes a size among them for a plain number, and reads a value into Python, by which it then decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import SymInt, Tensor

from anyshape.conversion.control_flow.forks import is_named_size
from anyshape.conversion.control_flow.samples import has_unknown_length
from anyshape.conversion.operators.onnx_words import INT64, as_vector, counted, op, rank, size_of, vector, whole
from anyshape.conversion.operators.repair import Answer, Repair, Used, answered, arange, holds_size, is_size
from anyshape.conversion.speed.operator_table import register_fake

# ---- what stands in a trace, and its shapes


def _shape_of_taken(x: Tensor, index: Tensor, dim: int) -> Tensor:
    axes = range(x.ndim)
    wider = (a if is_size(a) or a != 1 else b for a, b in zip(x.shape, index.shape, strict=True))
    return x.new_empty([index.shape[dim] if axis == dim else size for axis, size in zip(axes, wider, strict=True)])


torch.library.define("anyshape_sizes::take_along", "(Tensor x, Tensor index, int dim) -> Tensor")
register_fake("anyshape_sizes::take_along", _shape_of_taken)


def _shape_of_triangle(rows: Any, columns: Any, offset: Any, lower: bool) -> Tensor:
    """As many as there are on that side of the diagonal of a square; of other shapes nobody knows before."""
    if not isinstance(rows, int | SymInt) or str(rows) != str(columns):
        return torch.empty((2, torch.library.get_ctx().new_dynamic_size()), dtype=torch.int64)
    edge = offset if lower else -offset
    below, beyond = rows + edge, rows - edge - 1
    many = below * (below + 1) // 2 if edge <= 0 else rows * rows - beyond * (beyond + 1) // 2
    return torch.empty((2, many), dtype=torch.int64)


torch.library.define("anyshape_sizes::triangle", "(SymInt rows, SymInt columns, SymInt offset, bool lower) -> Tensor")
register_fake("anyshape_sizes::triangle", _shape_of_triangle)


# ---- places by sizes: `x[:, n - 1] = 0`, `take_along_dim`, `one_hot(x, n)`, triangles, diagonals, Kronecker's product


def _write_at_size(used: Used) -> Answer:
    """A view of the place, then a copy into it: what `x[place] = value` is where nothing is gathered."""

    def answer(x: Tensor, place: Any, value: Any) -> Any:
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

    return answer


def _take_along(used: Used) -> Answer:
    """A gather whose two tensors are broadcast at run time."""

    def answer(input: Tensor, indices: Tensor, dim: int | None = None) -> Any:  # noqa: A002
        if not holds_size(input.shape, indices.shape):
            return NotImplemented
        used("torch.take_along_dim: shapes at run time")
        if dim is None:
            return torch.gather(input.reshape(-1), 0, indices.reshape(-1))
        if input.ndim != indices.ndim:
            return NotImplemented
        return torch.ops.anyshape_sizes.take_along(input, indices, dim % input.ndim)

    return answer


def _one_hot(used: Used) -> Answer:
    def answer(tensor: Tensor, num_classes: Any = -1) -> Any:
        if not is_size(num_classes):
            return NotImplemented
        used("F.one_hot: classes by the size at run time")
        return (tensor.unsqueeze(-1) == arange(num_classes, device=tensor.device)).to(torch.int64)

    return answer


def _places_of_triangle(used: Used, name: str, *, lower: bool) -> Answer:
    def answer(row: Any, col: Any, offset: Any = 0, *, dtype: Any = torch.int64, device: Any = None, **_: Any) -> Any:
        if not holds_size((row, col, offset)):
            return NotImplemented
        used(f"torch.{name}: places by the size at run time")
        return torch.ops.anyshape_sizes.triangle(row, col, offset, lower).to(device=device, dtype=dtype)

    return answer


def _fill_diagonal(used: Used) -> Answer:
    def answer(x: Tensor, fill_value: Any, wrap: bool = False) -> Any:
        if x.ndim != 2 or wrap or not holds_size(x.shape):
            return NotImplemented
        used("x.fill_diagonal_: shape at run time")
        rows, columns = (arange(size, device=x.device) for size in x.shape)
        filled = torch.where(rows[:, None] == columns, torch.full((), fill_value, dtype=x.dtype, device=x.device), x)
        return x.copy_(filled)

    return answer


def _kronecker(used: Used) -> Answer:
    """Every value of the one times all of the other: a product over twice as many axes, joined in pairs."""

    def answer(input: Tensor, other: Tensor) -> Any:  # noqa: A002
        if not holds_size(input.shape, other.shape):
            return NotImplemented
        used("torch.kron: shapes at run time")
        axes = max(input.ndim, other.ndim)
        left, right = (x[(None,) * (axes - x.ndim)] for x in (input, other))
        wide = left.reshape([size for axis in left.shape for size in (axis, 1)])
        narrow = right.reshape([size for axis in right.shape for size in (1, axis)])
        return (wide * narrow).reshape([a * b for a, b in zip(left.shape, right.shape, strict=True)])

    return answer


def _indexed_by_sizes(used: Used) -> AbstractContextManager[None]:
    taken, diagonal = _take_along(used), _fill_diagonal(used)
    places: dict[tuple[Any, str], Answer] = {
        (Tensor, "__setitem__"): _write_at_size(used),
        (torch, "take_along_dim"): taken,
        (Tensor, "take_along_dim"): taken,
        (F, "one_hot"): _one_hot(used),
        (torch, "tril_indices"): _places_of_triangle(used, "tril_indices", lower=True),
        (torch, "triu_indices"): _places_of_triangle(used, "triu_indices", lower=False),
        (Tensor, "fill_diagonal_"): diagonal,
        (torch, "kron"): _kronecker(used),
        (Tensor, "kron"): _kronecker(used),
    }
    return answered(places)


INDEXING = Repair("indexing by sizes", _indexed_by_sizes)


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


def _written_at_values(used: Used) -> AbstractContextManager[None]:
    def answer(x: Tensor, place: Any, value: Any) -> Any:
        parts = place if isinstance(place, tuple) else (place,)
        chosen = [i for i, part in enumerate(parts) if _is_place(part) or _is_range(part)]
        if len(chosen) != 1 or not all(_is_plain(part) for i, part in enumerate(parts) if i != chosen[0]):
            return NotImplemented
        used("x[place] = value: the place by its value at run time")
        view = x[tuple(slice(None) if i == chosen[0] else part for i, part in enumerate(parts))]
        _write_at_value(view, _axis_of(parts, chosen[0], view), parts[chosen[0]], value)
        return None

    return answered({(Tensor, "__setitem__"): answer})


WRITTEN_PLACES = Repair("written places", _written_at_values)


# ---- a slice whose end is a value of the call: `x[:, :int(lengths.max())]`

# Recognised: a border that a trace does not know and that leaves a length it does not know. Torch computes that length
# in one way when it traces and in another when it translates, and fails between them. Put there: an operator that is
# ONNX's Slice, whose borders are cut to the axis as Python's are, with a length of its own.


def _cut_at_values(used: Used) -> AbstractContextManager[None]:
    def getitem(tensor: Tensor, index: Any) -> Any:
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

    return answered({(Tensor, "__getitem__"): getitem})


def _ends_at_value(part: slice) -> bool:
    borders = [number for number in (part.start, part.stop) if is_size(number)]
    return has_unknown_length(part) and not all(map(is_named_size, borders))


VALUE_SLICES = Repair("slices up to a value", _cut_at_values)

# ---- ONNX


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


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "anyshape_sizes::take_along": _onnx_take_along,
    "anyshape_sizes::triangle": _onnx_triangle,
}
