"""What values decide: comparisons to a plain truth; what is chosen or counted, whose size is known at run time only.

Recognised: `torch.equal`, `torch.allclose` and `torch.is_nonzero`, for which a trace has no answer. Put there: the same
comparison by elements and the question whether all of them hold, which a trace that takes both sides of a branch can
follow; where the shapes differ, `equal` is false, as in torch. Masked values, counts and places are translated alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor

from anyshape.conversion.operators.onnx_words import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT64,
    as_vector,
    from_front,
    number,
    op,
    rank,
    size_of,
    torchs_translation,
    vector,
    whole,
)
from anyshape.conversion.operators.repair import Answer, Repair, Used, answered

# ---- the repair


def _compared_in_the_file(used: Used) -> AbstractContextManager[None]:
    def equal(input: Tensor, other: Tensor) -> bool:  # noqa: A002
        used("torch.equal: compared in the file")
        return input.shape == other.shape and bool((input == other).all())

    def allclose(
        input: Tensor,  # noqa: A002
        other: Tensor,
        rtol: float = 1e-5,
        atol: float = 1e-8,
        equal_nan: bool = False,
    ) -> bool:
        used("torch.allclose: compared in the file")
        return bool(torch.isclose(input, other, rtol, atol, equal_nan).all())

    def is_nonzero(input: Tensor) -> bool:  # noqa: A002
        used("torch.is_nonzero: asked in the file")
        return bool(input.reshape(()) != 0)

    kinds: dict[str, Answer] = {"equal": equal, "allclose": allclose, "is_nonzero": is_nonzero}
    return answered({(owner, name): answer for owner in (torch, Tensor) for name, answer in kinds.items()})


COMPARISONS = Repair("comparisons", _compared_in_the_file)

# ---- ONNX


def _masked_select(x: ir.Value, mask: ir.Value) -> Any:
    """Both are broadcast against each other, then the values under the mask are taken row by row."""
    together = op.Shape(op.Expand(mask, op.Shape(x)))
    flat = op.Reshape(op.Expand(x, together), whole(-1))
    return op.Compress(flat, op.Reshape(op.Expand(mask, together), whole(-1)), axis=0)


def _places_in_fixed_number(x: ir.Value, *, size: int | ir.Value, fill_value: int = -1) -> Any:
    """As many rows as asked for, cut off or filled up."""
    truth = op.Cast(x, to=BOOL)
    found = op.Transpose(op.NonZero(truth), perm=[1, 0])
    shape = op.Concat(as_vector(size), whole(rank(x)), axis=0)
    filler = op.Expand(op.Constant(value=ir.tensor(fill_value, dtype=INT64)), shape)
    return op.Slice(op.Concat(found, filler, axis=0), whole(0), as_vector(size), whole(0))


def _counts(x: ir.Value, weights: ir.Value | None = None, minlength: int | ir.Value = 0) -> Any:
    """How often each number from 0 to the largest stands there, or the sum of its weights."""
    places = op.Cast(x, to=INT64)
    last = op.ReduceMax(op.Concat(places, whole(-1), axis=0), whole(0), keepdims=1)
    length = op.Max(op.Add(last, whole(1)), as_vector(minlength))
    dtype = INT64 if weights is None else FLOAT if weights.dtype == FLOAT else DOUBLE
    zeros = op.ConstantOfShape(length, value=ir.tensor([0], dtype=dtype))
    if weights is None:
        weights = op.ConstantOfShape(op.Shape(x), value=ir.tensor([1], dtype=INT64))
    return op.ScatterElements(zeros, places, op.Cast(weights, to=dtype), axis=0, reduction="add")


def _repeated_by_number(
    x: ir.Value, repeats: int | ir.Value, dim: int | None = None, *, output_size: Any = None
) -> Any:
    """Each slice along an axis as often as one number says; without an axis, each value."""
    del output_size
    if dim is None or rank(x) == 0:
        flat = op.Reshape(x, whole(-1, 1))
        shape = op.Concat(op.Shape(flat, start=0, end=1), as_vector(repeats), axis=0)
        return op.Reshape(op.Expand(flat, shape), whole(-1))
    axis, axes = from_front(dim, x), rank(x)
    before, after = [size_of(x, a) for a in range(axis + 1)], [size_of(x, a) for a in range(axis + 1, axes)]
    spread = op.Expand(op.Unsqueeze(x, whole(axis + 1)), vector([*before, repeats, *after]))
    longer = op.Mul(before.pop(), as_vector(repeats))
    return op.Reshape(spread, vector([*before, longer, *after]), allowzero=1)


def _are_all_true(x: ir.Value) -> Any:
    """Of no values, yes."""
    failing = op.ReduceSum(op.Cast(op.Not(x), to=INT64), keepdims=0)
    return op.Equal(failing, op.Constant(value=ir.tensor(0, dtype=INT64)))


def _is_any_true(x: ir.Value) -> Any:
    holding = op.ReduceSum(op.Cast(x, to=INT64), keepdims=0)
    return op.Greater(holding, op.Constant(value=ir.tensor(0, dtype=INT64)))


def _histogram(x: ir.Value, bins: int = 100, min: float = 0, max: float = 0) -> Any:  # noqa: A002  torch's names
    """Without a range, from the smallest value to the largest, or one to each side where they are the same."""
    if min != max:
        return torchs_translation("core.aten_histc")(x, bins, min, max)
    flat = op.Reshape(x, whole(-1))
    low, high = op.ReduceMin(flat, whole(0), keepdims=1), op.ReduceMax(flat, whole(0), keepdims=1)
    one = number(1, x)
    same = op.Equal(low, high)
    low, high = op.Where(same, op.Sub(low, one), low), op.Where(same, op.Add(high, one), high)
    share = op.Mul(op.Div(op.Sub(flat, low), op.Sub(high, low)), number(bins, x))
    place = op.Min(op.Cast(op.Floor(share), to=INT64), whole(bins - 1))
    zeros = op.Expand(number(0, x), whole(bins))
    return op.ScatterElements(zeros, place, op.Expand(one, op.Shape(flat)), axis=0, reduction="add")


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::_is_all_true": _are_all_true,
    "aten::_is_any_true": _is_any_true,
    "aten::masked_select": _masked_select,
    "aten::nonzero_static": _places_in_fixed_number,
    "aten::bincount": _counts,
    "aten::histc": _histogram,
    "aten::repeat_interleave.self_int": _repeated_by_number,
}
