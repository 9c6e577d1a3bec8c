"""Operators on tensors so large that a wide copy would hurt: rows are picked first, products are taken block by block.

A table of words may fill the memory by itself. What a call needs of it are a few rows; and where it is the output
layer, too, a block of it after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

LARGE = 2**20
"""Bytes from which a tensor is not widened as a whole."""
_BUFFER = 33 * 2**20
"""Bytes of a block. The C library gives memory of this length back at once; shorter pieces it keeps, and loses some
between others.
"""
_aten = torch.ops.aten
_PICKS = (
    _aten.embedding.default, _aten.index.Tensor, _aten.index_select.default, _aten.gather.default, _aten.take.default,
)  # fmt: skip
"""They pick numbers of their first argument and compute none."""
_PADDING_OF_BAGS = 8
"""The place of the row that a bag leaves out, counted from 0."""

Widen = Callable[[Any], Any]


def is_large(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() * value.element_size() > LARGE


def run_sparingly(func: Any, args: Any, kwargs: Any, widen: Widen) -> Any:
    """The wide result of an operator without a wide copy of its large tensors; NotImplemented where it needs one.

    What is only looked at in another way stays narrow until somebody computes with it.
    """
    if func in _PICKS:
        return widen(func(*args, **kwargs))
    if not any(map(is_large, args)):
        return NotImplemented
    if _is_view(func):
        return func(*args, **kwargs)
    run = _SPARING.get(func)
    return NotImplemented if run is None else run(func, args, kwargs, widen)


def _is_view(func: Any) -> bool:
    schema = getattr(func, "_schema", None)
    if schema is None or schema.is_mutable:
        return False
    return any(result.alias_info is not None for result in schema.returns)


def _bag(func: Any, args: Any, kwargs: Any, widen: Widen) -> Any:
    """Sums of rows: those that occur make a table of their own."""
    table, indices, *others = args
    if len(args) > _PADDING_OF_BAGS and args[_PADDING_OF_BAGS] >= 0:
        return NotImplemented
    rows, places = indices.unique(return_inverse=True)
    return func(widen(table.index_select(0, rows)), places, *map(widen, others), **kwargs)


def _mm(_func: Any, args: Any, _kwargs: Any, widen: Widen) -> Any:
    return _product(args[0], args[1], widen)


def _addmm(_func: Any, args: Any, kwargs: Any, widen: Widen) -> Any:
    product = _product(args[1], args[2], widen)
    return widen(args[0]) * kwargs.get("beta", 1) + product * kwargs.get("alpha", 1)


def _product(left: torch.Tensor, right: torch.Tensor, widen: Widen) -> torch.Tensor:
    """A matrix product, with the large matrix widened in blocks: columns on the right, rows on the left."""
    if not is_large(right):
        return _product(right.t(), left.t(), widen).t()
    left = widen(left)
    length, count = right.shape
    product = left.new_empty(left.shape[0], count)
    buffer = left.new_empty(max(_BUFFER // left.element_size(), length))
    step = buffer.numel() // max(length, 1)
    for start in range(0, count, step):
        block = right[:, start : start + step]
        wide = buffer[: block.numel()].view(block.shape[1], length).t()
        product[:, start : start + step] = left @ wide.copy_(block)
    return product


_SPARING: dict[Any, Callable[[Any, Any, Any, Widen], Any]] = {
    _aten._embedding_bag.default: _bag,
    _aten._embedding_bag_forward_only.default: _bag,
    _aten.mm.default: _mm,
    _aten.addmm.default: _addmm,
}
