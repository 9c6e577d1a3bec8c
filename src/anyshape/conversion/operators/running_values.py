"""Running maxima, minima and products along an axis, as an ONNX Scan that keeps what it has so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import (
    BOOL,
    INT64,
    as_scalar,
    counted,
    from_front,
    moved,
    op,
    rank,
    scan,
    whole,
)


def scanned(
    begin: Sequence[Any],
    sequences: Sequence[Any],
    types: Sequence[Any],
    step: Callable[..., Sequence[Any]],
    *,
    last: bool = False,
) -> list[Any]:
    """A Scan whose steps are given by a function; `types` are those of the states, then those of what is scanned.

    `step` returns the new states and, if it has others than these, the outputs. What comes back are the outputs of all
    steps, stacked, or the `last` states.
    """
    states = len(begin)
    before = [ir.Value(name=f"before_{i}", type=ir.TensorType(kind)) for i, kind in enumerate(types[:states])]
    slices = [ir.Value(name=f"slice_{i}", type=ir.TensorType(kind)) for i, kind in enumerate(types[states:])]

    def body(*values: Any) -> list[Any]:
        results = list(step(*values))
        if last:
            return results[:states]
        return results if len(results) > states else [*results, *(op.Identity(state) for state in results)]

    found = scan(begin, sequences, [*before, *slices], body)
    return found[:states] if last else found[states:]


def _first_slice(x: Any) -> Any:
    return op.Squeeze(op.Slice(x, whole(0), whole(1), whole(0)), whole(0))


def _running_extremes(better: Callable[..., Any]) -> Callable[..., Any]:
    """Values and places; of equal values, the last one counts."""

    def translate(x: ir.Value, dim: int) -> tuple[Any, Any]:
        if rank(x) == 0:
            return op.Identity(x), as_scalar(0)
        axis, axes = from_front(dim, x), rank(x)
        front = moved(x, axis, 0, axes)
        first = _first_slice(front)
        place = op.Expand(as_scalar(0), op.Shape(first))

        def step(value: Any, where: Any, now: Any, index: Any) -> tuple[Any, Any]:
            ahead = better(now, value)
            return op.Where(ahead, now, value), op.Where(ahead, index, where)

        steps = counted(op.Shape(front, start=0, end=1))
        values, places = scanned([first, place], [front, steps], [x.dtype, INT64, x.dtype, INT64], step)
        return moved(values, 0, axis, axes), moved(places, 0, axis, axes)

    return translate


def _running_products(x: ir.Value, dim: int, *, dtype: int | None = None) -> Any:
    kind = ir.DataType(dtype) if dtype not in (None, -1) else x.dtype
    if kind is not None and kind in (BOOL, ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32):
        kind = INT64 if dtype in (None, -1) else kind
    typed = x if kind == x.dtype else op.Cast(x, to=kind)
    if rank(x) == 0:
        return op.Identity(typed)
    axis, axes = from_front(dim, x), rank(x)
    front = moved(typed, axis, 0, axes)
    ones = op.Expand(op.Constant(value=ir.tensor(1, dtype=kind)), op.Shape(_first_slice(front)))
    (products,) = scanned([ones], [front], [kind, kind], lambda so_far, now: [op.Mul(so_far, now)])
    return moved(products, 0, axis, axes)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::cummax": _running_extremes(op.GreaterOrEqual),
    "aten::cummin": _running_extremes(op.LessOrEqual),
    "aten::cumprod": _running_products,
}
