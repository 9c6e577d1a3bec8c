"""Indexing by sizes that torch takes for plain numbers: `x[:, n - 1] = 0`, `take_along_dim`, `one_hot(x, n)`.

Recognised: a write to a place that is a size; `torch.take_along_dim` over symbolic shapes; `F.one_hot` with a size as
the number of classes; the places below and above a diagonal; the diagonal of a matrix filled; Kronecker's product. Put
there: the same by operators that take sizes, as each answer says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import SymInt, Tensor

from anyshape.conversion.control_flow.forks import is_size
from anyshape.conversion.control_flow.samples import has_unknown_length
from anyshape.conversion.operators.onnx_words import INT64, as_vector, counted, op, rank, size_of, vector, whole
from anyshape.conversion.operators.repair import Repair, Used, answered
from anyshape.conversion.speed.registration import register_fake

Function = Callable[..., Any]
_numbered: Function = torch.arange  # typed for plain numbers


def _is_sized(*tensors: Tensor) -> bool:
    return any(isinstance(size, SymInt) for tensor in tensors for size in tensor.shape)


def _write_at_size(used: Used) -> Function:
    """A view of the place, then a copy into it: what `x[place] = value` is where nothing is gathered."""

    def answer(x: Tensor, place: Any, value: Any) -> Any:
        parts = place if isinstance(place, tuple) else (place,)
        plain = all(part is None or part is Ellipsis or isinstance(part, int | slice | SymInt) for part in parts)
        if not plain or not any(isinstance(part, SymInt) for part in parts):
            return NotImplemented
        used("x[size] = value: the place by the size at run time")
        view = x[place]
        if not isinstance(value, Tensor):
            return view.fill_(value)
        while value.ndim > view.ndim:
            value = value.squeeze(0)
        return view.copy_(value)

    return answer


def _shape_of_taken(x: Tensor, index: Tensor, dim: int) -> Tensor:
    axes = range(x.ndim)
    wider = (a if isinstance(a, SymInt) or a != 1 else b for a, b in zip(x.shape, index.shape, strict=True))
    return x.new_empty([index.shape[dim] if axis == dim else size for axis, size in zip(axes, wider, strict=True)])


torch.library.define("anyshape_sizes::take_along", "(Tensor x, Tensor index, int dim) -> Tensor")
register_fake("anyshape_sizes::take_along", _shape_of_taken)


def _take_along(used: Used) -> Function:
    """A gather whose two tensors are broadcast at run time."""

    def answer(input: Tensor, indices: Tensor, dim: int | None = None) -> Any:  # noqa: A002
        if not _is_sized(input, indices):
            return NotImplemented
        used("torch.take_along_dim: shapes at run time")
        if dim is None:
            return torch.gather(input.reshape(-1), 0, indices.reshape(-1))
        if input.ndim != indices.ndim:
            return NotImplemented
        return torch.ops.anyshape_sizes.take_along(input, indices, dim % input.ndim)

    return answer


def _one_hot(used: Used) -> Function:
    def answer(tensor: Tensor, num_classes: Any = -1) -> Any:
        if not isinstance(num_classes, SymInt):
            return NotImplemented
        used("F.one_hot: classes by the size at run time")
        return (tensor.unsqueeze(-1) == _numbered(num_classes, device=tensor.device)).to(torch.int64)

    return answer


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


def _triangle(used: Used, name: str, *, lower: bool) -> Function:
    def answer(row: Any, col: Any, offset: Any = 0, *, dtype: Any = torch.int64, device: Any = None, **_: Any) -> Any:
        if not any(isinstance(size, SymInt) for size in (row, col, offset)):
            return NotImplemented
        used(f"torch.{name}: places by the size at run time")
        return torch.ops.anyshape_sizes.triangle(row, col, offset, lower).to(device=device, dtype=dtype)

    return answer


def _fill_diagonal(used: Used) -> Function:
    def answer(x: Tensor, fill_value: Any, wrap: bool = False) -> Any:
        if x.ndim != 2 or wrap or not _is_sized(x):
            return NotImplemented
        used("x.fill_diagonal_: shape at run time")
        rows, columns = (_numbered(size, device=x.device) for size in x.shape)
        filled = torch.where(rows[:, None] == columns, torch.full((), fill_value, dtype=x.dtype, device=x.device), x)
        return x.copy_(filled)

    return answer


def _kronecker(used: Used) -> Function:
    """Every value of the one times all of the other: a product over twice as many axes, joined in pairs."""

    def answer(input: Tensor, other: Tensor) -> Any:  # noqa: A002
        if not _is_sized(input, other):
            return NotImplemented
        used("torch.kron: shapes at run time")
        axes = max(input.ndim, other.ndim)
        left, right = (x[(None,) * (axes - x.ndim)] for x in (input, other))
        wide = left.reshape([size for axis in left.shape for size in (axis, 1)])
        narrow = right.reshape([size for axis in right.shape for size in (1, axis)])
        return (wide * narrow).reshape([a * b for a, b in zip(left.shape, right.shape, strict=True)])

    return answer


@contextlib.contextmanager
def _apply_indexing(used: Used) -> Iterator[None]:
    taken, diagonal = _take_along(used), _fill_diagonal(used)
    places: dict[tuple[Any, str], Function] = {
        (Tensor, "__setitem__"): _write_at_size(used),
        (torch, "take_along_dim"): taken,
        (Tensor, "take_along_dim"): taken,
        (F, "one_hot"): _one_hot(used),
        (torch, "tril_indices"): _triangle(used, "tril_indices", lower=True),
        (torch, "triu_indices"): _triangle(used, "triu_indices", lower=False),
        (Tensor, "fill_diagonal_"): diagonal,
        (torch, "kron"): _kronecker(used),
        (Tensor, "kron"): _kronecker(used),
    }
    with answered(places):
        yield


INDEXING = Repair("indexing by sizes", _apply_indexing)


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


def _is_place(part: Any) -> bool:
    whole = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
    return isinstance(part, Tensor) and part.ndim == 0 and part.dtype in whole


def _is_range(part: Any) -> bool:
    bounded = isinstance(part, slice) and part.step in (None, 1)
    return bounded and (_is_place(part.start) or _is_place(part.stop))


def _is_plain(part: Any) -> bool:
    if isinstance(part, slice):
        return not any(isinstance(bound, Tensor) for bound in (part.start, part.stop, part.step))
    return part is None or part is Ellipsis or (isinstance(part, (int, torch.SymInt)) and not isinstance(part, bool))


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
        spread = _laid_out(value, view, axis, places - first)
    else:
        written = places == torch.where(part < 0, part + length, part)
        # the axis of a single place is not in the value
        spread = value if value.ndim < view.ndim - axis else value.unsqueeze(value.ndim - (view.ndim - 1 - axis))
    at = written.reshape([-1 if a == axis else 1 for a in range(view.ndim)])
    view.copy_(torch.where(at, spread.to(view.dtype), view))


def _laid_out(value: Tensor, view: Tensor, written_axis: int, index: Tensor) -> Tensor:
    """The value with its own run of places moved to where it is written; what broadcasts stays as it is."""
    own = value.ndim - (view.ndim - written_axis)
    if own < 0 or (isinstance(value.shape[own], int) and value.shape[own] == 1):
        return value
    # one more, so that a value without any place can be numbered, too
    more = value.new_zeros([1 if axis == own else size for axis, size in enumerate(value.shape)])
    return torch.cat([value, more], dim=own).index_select(own, index.clamp(0, value.shape[own]))


@contextlib.contextmanager
def _apply_written_places(used: Used) -> Iterator[None]:
    def answer(x: Tensor, place: Any, value: Any) -> Any:
        parts = place if isinstance(place, tuple) else (place,)
        chosen = [i for i, part in enumerate(parts) if _is_place(part) or _is_range(part)]
        if len(chosen) != 1 or not all(_is_plain(part) for i, part in enumerate(parts) if i != chosen[0]):
            return NotImplemented
        used("x[place] = value: the place by its value at run time")
        view = x[tuple(slice(None) if i == chosen[0] else part for i, part in enumerate(parts))]
        _write_at_value(view, _axis_of(parts, chosen[0], view), parts[chosen[0]], value)
        return None

    with answered({(Tensor, "__setitem__"): answer}):
        yield


WRITTEN_PLACES = Repair("written places", _apply_written_places)


@contextlib.contextmanager
def _apply_value_slices(used: Used) -> Iterator[None]:
    def getitem(tensor: Tensor, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        # an ellipsis, None or a tensor among the parts moves the axes
        if not all(isinstance(part, slice) for part in parts) or not any(map(_is_unknown, parts)):
            return NotImplemented
        used("a slice up to a value: cut in the file")
        for axis, part in enumerate(parts):
            if _is_unknown(part):
                start = 0 if part.start is None else part.start
                end = tensor.shape[axis] if part.stop is None else part.stop
                tensor = torch.ops.anyshape.cut(tensor, axis, start, end)
            elif part != slice(None):
                tensor = tensor[(slice(None),) * axis + (part,)]
        return tensor

    with answered({(Tensor, "__getitem__"): getitem}):
        yield


def _is_unknown(part: slice) -> bool:
    borders = [number for number in (part.start, part.stop) if isinstance(number, torch.SymInt)]
    return has_unknown_length(part) and not all(map(is_size, borders))


VALUE_SLICES = Repair("slices up to a value", _apply_value_slices)
