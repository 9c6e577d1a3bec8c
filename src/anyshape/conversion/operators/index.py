"""Indexing by sizes that torch takes for plain numbers: `x[:, n - 1] = 0`, `take_along_dim`, `one_hot(x, n)`.

Recognised: a write to a place that is a size; `torch.take_along_dim` over symbolic shapes; `F.one_hot` with a size as
the number of classes; the places below and above a diagonal; the diagonal of a matrix filled; Kronecker's product. Put
there: the same by operators that take sizes, as each answer says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import SymInt, Tensor

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.repair_answering import answered
from anyshape.torchkit.custom_operators import register_fake

Function = Callable[..., Any]
_numbered: Function = torch.arange  # typed for plain numbers


def _is_sized(*tensors: Tensor) -> bool:
    return any(isinstance(size, SymInt) for tensor in tensors for size in tensor.shape)


def _write(used: Used) -> Function:
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
def _apply(used: Used) -> Iterator[None]:
    taken, diagonal = _take_along(used), _fill_diagonal(used)
    places: dict[tuple[Any, str], Function] = {
        (Tensor, "__setitem__"): _write(used),
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


INDEXING = Repair("indexing by sizes", _apply)
