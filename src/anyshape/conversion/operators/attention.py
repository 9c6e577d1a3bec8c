"""`F.scaled_dot_product_attention` of any rank, with masks of any shape that broadcasts, and masks taken as they are.

Torch's own translation takes four axes only, and hands a mask to ONNX's `Attention` as it is; ONNX Runtime refuses one
that broadcasts over queries or keys. Here leading axes are folded into the batch, and the mask is spread over queries
and keys first. Before opset 23, and where batches or heads broadcast, the same is written as products and a softmax. A
query that may look at no key gets zeros, as in PyTorch: `Attention` in ONNX Runtime gives zeros, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import evaluator, opset23

from anyshape.conversion.operators.onnx_words import (
    BOOL,
    DOUBLE,
    counted,
    number,
    op,
    rank,
    size_of,
    static_size,
    whole,
)
from anyshape.conversion.operators.repair import Repair, Used
from anyshape.torchkit.patches import replaced

# ---- the repair: torch's transformers compare a mask with a causal one, value by value, which a trace cannot follow

# Put there: "not causal". That is the same: a mask that is not called causal is applied as it is, while `is_causal`
# only lets attention make the same mask by itself. Where the caller says `is_causal=True`, torch does not compare, and
# nothing is put there.


def _masks_unseen(used: Used) -> AbstractContextManager[None]:
    def detect(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:  # noqa: ARG001  torch's
        if is_causal is not None:
            return is_causal
        if mask is not None:
            used("nn.Transformer: the mask is applied as it is, without a look at its values")
        return False

    return replaced("torch.nn.modules.transformer._detect_is_causal_mask", lambda _looking: detect)


# without it no such model is ever traced, and no other model has the comparison
CAUSAL_MASKS = Repair("causal masks", _masks_unseen, always=True)

# ---- ONNX: which way

_OPERATOR: Any = opset23
_OPSET_OF_OPERATOR = 23
_BATCH_HEADS = 4
"""Axes of what `Attention` takes: batch, heads, positions, features."""


def _attention(
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    attn_mask: ir.Value | None = None,
    dropout_p: float = 0.0,  # noqa: ARG001  none in eval mode; what is random is refused before
    is_causal: bool = False,
    scale: float | ir.Value | None = None,
    enable_gqa: bool = False,
) -> ir.Value:
    # the operator takes the root of its scale, which is a float32
    rooted = query.dtype != DOUBLE and (scale is None or (not isinstance(scale, ir.Value) and scale > 0))
    if rooted and _has_operator() and _fits_operator(query, key, value, grouped=enable_gqa):
        return _by_operator(query, key, value, attn_mask, is_causal=is_causal, scale=scale)
    if enable_gqa:
        key, value = _repeated_heads(key, query), _repeated_heads(value, query)
    return _by_products(query, key, value, attn_mask, is_causal=is_causal, scale=scale)


def _has_operator() -> bool:
    version = getattr(getattr(evaluator.default(), "opset", None), "version", 0)
    return bool(version >= _OPSET_OF_OPERATOR)


def _fits_operator(query: ir.Value, key: ir.Value, value: ir.Value, *, grouped: bool) -> bool:
    """Whether all leading axes are the same, so that nothing broadcasts; heads may be grouped."""
    axes = rank(query)
    if not axes == rank(key) == rank(value):
        return False
    heads = axes - 3
    same = range(axes - 2) if not grouped else range(heads)
    if not all(_are_equal_sizes(query, other, axis) for axis in same for other in (key, value)):
        return False
    if not grouped:
        return True
    few, many = static_size(key, heads), static_size(query, heads)
    return axes == _BATCH_HEADS and few is not None and few == static_size(value, heads) and many is not None


def _are_equal_sizes(one: ir.Value, other: ir.Value, axis: int) -> bool:
    assert one.shape is not None
    assert other.shape is not None
    return _is_named(one.shape[axis]) and one.shape[axis] == other.shape[axis]


def _is_named(size: int | ir.SymbolicDim) -> bool:
    return isinstance(size, int) or size.value is not None


# ---- ONNX: the operator


def _by_operator(
    query: ir.Value, key: ir.Value, value: ir.Value, mask: ir.Value | None, *, is_causal: bool, scale: Any
) -> ir.Value:
    axes = rank(query)
    spread = None if mask is None else _mask_for_operator(_above_lowest(mask), query, key)
    folded = [_with_four_axes(one) for one in (query, key, value)]
    found, *_ = _OPERATOR.Attention(*folded, attn_mask=spread, scale=scale, is_causal=int(is_causal))
    if axes == _BATCH_HEADS:
        return found  # type: ignore[no-any-return]
    shape = op.Concat(op.Shape(query, start=0, end=axes - 1), size_of(value, axes - 1), axis=0)
    return op.Reshape(found, shape, allowzero=1)


def _above_lowest(mask: ir.Value) -> ir.Value:
    """The lowest number that there is, moved up a bit: ONNX Runtime takes it for "hidden", as it does infinity.

    It makes a difference where a query has nothing else: in PyTorch all keys weigh the same then.
    """
    if mask.dtype is None or mask.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16):
        return mask
    lowest = float(np.finfo(mask.dtype.numpy()).min)
    above: ir.Value = op.Where(op.Equal(mask, number(lowest, mask)), number(lowest * 0.96875, mask), mask)
    above.shape, above.dtype = mask.shape, mask.dtype
    return above


def _with_four_axes(value: ir.Value) -> ir.Value:
    """With four axes: one of size 1 for heads that are not there, one for all that stands before heads."""
    axes = rank(value)
    if axes < _BATCH_HEADS:
        missing = range(_BATCH_HEADS - axes) if axes == 2 else (1,)
        return op.Unsqueeze(value, whole(*missing))
    return value if axes == _BATCH_HEADS else _with_one_batch_axis(value, value)


def _with_one_batch_axis(value: ir.Value, like: ir.Value) -> ir.Value:
    """All but the last three axes as one; `like` tells how many there are."""
    axes = rank(like)
    batch = op.ReduceProd(op.Shape(value, start=0, end=axes - 3), keepdims=1)
    rest = op.Shape(value, start=axes - 3, end=axes)
    return op.Reshape(value, op.Concat(batch, rest, axis=0), allowzero=1)


def _mask_for_operator(mask: ir.Value, query: ir.Value, key: ir.Value) -> ir.Value:
    """The mask for every query and key, with axes that stand for the folded ones."""
    axes, own = rank(query), rank(mask)
    pair = [size_of(query, axes - 2), size_of(key, axes - 2)]
    if axes > _BATCH_HEADS and own >= _BATCH_HEADS:
        full = op.Expand(mask, op.Concat(op.Shape(query, start=0, end=axes - 2), *pair, axis=0))
        return _with_one_batch_axis(full, query)
    if not _covers(mask, query, key):
        mask = op.Expand(mask, op.Concat(*pair, axis=0))
    if axes == 3 and own == 3:
        mask = op.Unsqueeze(mask, whole(1))
    return mask


def _covers(mask: ir.Value, query: ir.Value, key: ir.Value) -> bool:
    assert mask.shape is not None
    assert query.shape is not None
    assert key.shape is not None
    wanted = (query.shape[-2], key.shape[-2])
    return all(map(_is_named, wanted)) and tuple(mask.shape[-2:]) == wanted


# ---- ONNX: products and a softmax


def _by_products(
    query: ir.Value, key: ir.Value, value: ir.Value, mask: ir.Value | None, *, is_causal: bool,
    scale: float | ir.Value | None,
) -> ir.Value:  # fmt: skip
    axes = rank(key)
    flipped = op.Transpose(key, perm=[*range(axes - 2), axes - 1, axes - 2])
    scores = op.MatMul(*_scaled_pair(query, flipped, scale))
    if is_causal:
        mask = _causal_mask(query, key)
    if mask is not None:
        scores = _masked_scores(scores, mask, query)
    weights = op.Softmax(scores, axis=-1)
    if mask is not None and not is_causal:  # the first key is never hidden by causality
        weights = op.Where(_sees_nothing(mask), number(0.0, query), weights)
    return op.MatMul(weights, value)


def _scaled_pair(query: ir.Value, keys: ir.Value, scale: float | ir.Value | None) -> tuple[ir.Value, ir.Value]:
    """Query and key, each by the root of the scale: halves do not overflow where their product would not."""
    if scale is None and (features := static_size(query, rank(query) - 1)) is not None:
        scale = 1.0 / math.sqrt(max(features, 1))
    if isinstance(scale, (int, float)) and scale >= 0:
        root = number(math.sqrt(scale), query)
        return op.Mul(query, root), op.Mul(keys, root)
    if scale is None:
        features_at_run_time = op.CastLike(op.Squeeze(size_of(query, rank(query) - 1), whole(0)), query)
        scale = op.Reciprocal(op.Sqrt(features_at_run_time))
    return op.Mul(query, number(scale, query)), keys


def _causal_mask(query: ir.Value, key: ir.Value) -> ir.Value:
    """Query i sees keys 0 to i, whatever the lengths."""
    rows = op.Unsqueeze(counted(size_of(query, rank(query) - 2)), whole(1))
    seen: ir.Value = op.GreaterOrEqual(rows, counted(size_of(key, rank(key) - 2)))
    seen.dtype = BOOL
    return seen


def _masked_scores(scores: ir.Value, mask: ir.Value, query: ir.Value) -> ir.Value:
    if mask.dtype == BOOL:
        return op.Where(mask, scores, number(-math.inf, query))
    return op.Add(scores, mask if mask.dtype == query.dtype else op.CastLike(mask, query))


def _sees_nothing(mask: ir.Value) -> ir.Value:
    """For each query, whether no key is left to it.

    Counted: of a ReduceMax, ONNX Runtime's symbolic shape inference does not know the shape.
    """
    seen = mask if mask.dtype == BOOL else op.Not(op.Equal(mask, number(-math.inf, mask)))
    count = op.ReduceSum(op.Cast(seen, to=ir.DataType.INT32), whole(-1), keepdims=1)
    return op.Equal(count, op.Constant(value=ir.tensor(0, dtype=ir.DataType.INT32)))


def _repeated_heads(few: ir.Value, many: ir.Value) -> ir.Value:
    """Each head as often as it takes to reach the number of the query's heads: 0, 0, 1, 1 and so on."""
    axes = rank(few)
    heads = size_of(few, axes - 3)
    times = op.Div(size_of(many, rank(many) - 3), heads)
    before, after = op.Shape(few, start=0, end=axes - 2), op.Shape(few, start=axes - 2, end=axes)
    copies = op.Expand(op.Unsqueeze(few, whole(axes - 2)), op.Concat(before, times, after, axis=0))
    batch = op.Shape(few, start=0, end=axes - 3)
    shape = op.Concat(batch, op.Mul(heads, times), after, axis=0)
    repeated: ir.Value = op.Reshape(copies, shape, allowzero=1)
    repeated.shape = ir.Shape([None] * axes)
    return repeated


TRANSLATIONS: dict[str, Callable[..., Any]] = {"aten::scaled_dot_product_attention": _attention}
