"""Grouped products of mixtures of experts: rows sorted by expert, each group by the weights of its own.

`offs` says where each group ends. The number of experts is fixed, the lengths of the groups are not: each group is cut
out at run time, and groups without rows give none. Rows behind the last group are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.onnx_words_shapes import INT64, number, rank, size_of, static_size, whole


def _rows_by_group(x: ir.Value, weight: ir.Value, ends: ir.Value) -> Any:
    many = static_size(weight, 0)
    if many is None:
        raise NotImplementedError("grouped products with a dynamic number of experts")
    borders = op.Concat(whole(0), op.Cast(ends, to=INT64), axis=0)
    parts = []
    for group in range(many):
        start = op.Slice(borders, whole(group), whole(group + 1))
        end = op.Slice(borders, whole(group + 1), whole(group + 2))
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
        start = op.Slice(borders, whole(group), whole(group + 1))
        end = op.Slice(borders, whole(group + 1), whole(group + 2))
        product = op.MatMul(op.Slice(x, start, end, whole(1)), op.Slice(weight, start, end, whole(0)))
        parts.append(op.Unsqueeze(product, whole(0)))
    return op.Concat(*parts, axis=0)


def _grouped(
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
    "aten::_grouped_mm": _grouped,
    "anyshape_sizes::grouped_mm": _grouped,
    "transformers::grouped_mm_fallback": _grouped,
}
