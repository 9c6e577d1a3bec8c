"""Grouped products of mixtures of experts: rows sorted by expert, each group by the weights of its own.

Recognised: `F.grouped_mm` in other types than bfloat16, which alone torch's shape function knows, though its kernel
does not mind. Put there: an operator of the same meaning.

`offs` says where each group ends. The number of experts is fixed, the lengths of the groups are not: each group is cut
out at run time, and groups without rows give none. Rows behind the last group are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import Tensor

from anyshape.conversion.operators.onnx_words import INT64, number, op, rank, size_of, static_size, whole
from anyshape.conversion.operators.repair import Repair, Used, answered
from anyshape.conversion.speed.operator_table import register_fake

# ---- what stands in a trace, and its shape


def _shape_of_product(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    if weight.ndim == 3:
        return x.new_empty((x.shape[0], weight.shape[2]))
    return x.new_empty((ends.shape[0], x.shape[0], weight.shape[1]))


torch.library.define("anyshape_sizes::grouped_mm", "(Tensor x, Tensor weight, Tensor ends) -> Tensor")
register_fake("anyshape_sizes::grouped_mm", _shape_of_product)


# ---- the repair


def _products_by_group(used: Used) -> AbstractContextManager[None]:
    def answer(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, **named: Any) -> Any:
        if mat_a.ndim != 2 or offs is None or any(value is not None for value in named.values()):
            return NotImplemented
        used("F.grouped_mm: a product for each group")
        return torch.ops.anyshape_sizes.grouped_mm(mat_a, mat_b, offs)

    return answered({(F, "grouped_mm"): answer})


EXPERTS = Repair("grouped products", _products_by_group)


# ---- ONNX


def _borders_of(group: int, borders: Any) -> tuple[Any, Any]:
    start = op.Slice(borders, whole(group), whole(group + 1))
    return start, op.Slice(borders, whole(group + 1), whole(group + 2))


def _rows_by_group(x: ir.Value, weight: ir.Value, ends: ir.Value) -> Any:
    many = static_size(weight, 0)
    if many is None:
        raise NotImplementedError("grouped products with a dynamic number of experts")
    borders = op.Concat(whole(0), op.Cast(ends, to=INT64), axis=0)
    parts = []
    for group in range(many):
        start, end = _borders_of(group, borders)
        rows = op.Slice(x, start, end, whole(0))
        parts.append(op.MatMul(rows, op.Gather(weight, op.Constant(value=ir.tensor(group, dtype=INT64)), axis=0)))
    left_over = op.Sub(size_of(x, 0), op.Slice(borders, whole(many), whole(many + 1)))
    shape = op.Concat(left_over, size_of(weight, 2), axis=0)
    return op.Concat(*parts, op.Expand(number(0, x), shape), axis=0)


def _columns_by_group(x: ir.Value, weight: ir.Value, ends: ir.Value, groups: int) -> Any:
    """Both have two axes: the inner one, over which is summed, is in groups."""
    borders = op.Concat(whole(0), op.Cast(ends, to=INT64), axis=0)
    parts = []
    for group in range(groups):
        start, end = _borders_of(group, borders)
        product = op.MatMul(op.Slice(x, start, end, whole(1)), op.Slice(weight, start, end, whole(0)))
        parts.append(op.Unsqueeze(product, whole(0)))
    return op.Concat(*parts, axis=0)


def _grouped_product(
    x: ir.Value, weight: ir.Value, offs: ir.Value | None = None, bias: ir.Value | None = None, out_dtype: Any = None
) -> Any:
    if bias is not None or out_dtype not in (None, -1):
        raise NotImplementedError("grouped products with a bias or another type")
    if offs is None:
        return op.MatMul(x, weight)
    if (rank(x), rank(weight)) == (2, 3):
        return _rows_by_group(x, weight, offs)
    groups = static_size(offs, 0)
    if (rank(x), rank(weight)) == (2, 2) and groups is not None:
        return _columns_by_group(x, weight, offs, groups)
    raise NotImplementedError("grouped products of these ranks")


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::_grouped_mm": _grouped_product,
    "anyshape_sizes::grouped_mm": _grouped_product,
    "transformers::grouped_mm_fallback": _grouped_product,
}
