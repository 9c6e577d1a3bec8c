"""Inverses, solutions, determinants, Cholesky factors and exponentials of matrices, of any size, in batches.

ONNX has no operators for them. Elimination goes through the columns one by one, with the largest pivot, in an ONNX
Scan; everything is computed in double, so that another order of operations than LAPACK's does not show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators import recurrent
from anyshape.conversion.operators.onnx_words import (
    DOUBLE,
    INT64,
    as_scalar,
    counted,
    from_front,
    moved,
    number,
    op,
    rank,
    size_of,
    whole,
)


def _exact(value: float) -> Any:
    return op.Constant(value=ir.tensor(float(value), dtype=DOUBLE))


def _flipped(x: Any, axes: int) -> Any:
    return op.Transpose(x, perm=[*range(axes - 2), axes - 1, axes - 2])


def _identity_like(x: Any) -> Any:
    """Ones on the diagonal of the last two axes, in as many batches."""
    index = counted(op.Shape(x, start=-1))
    unit = op.Cast(op.Equal(op.Unsqueeze(index, whole(0)), op.Unsqueeze(index, whole(1))), to=DOUBLE)
    return op.Expand(unit, op.Shape(x))


def _eliminate(work: Any, many: Any) -> tuple[Any, Any, Any]:
    """Gauss and Jordan: the first columns become the identity; also the sign and the logarithm of the determinant.

    `work` is (..., n, m) in double, `many` is n.
    """
    index = counted(many)
    rows = op.Unsqueeze(index, whole(1))
    one = op.ReduceSum(op.Mul(work, _exact(0)), whole(-2, -1), keepdims=1)
    sign, logarithm = op.Add(one, _exact(1)), op.Identity(one)

    def step(matrix: Any, sign: Any, logarithm: Any, column: Any) -> tuple[Any, Any, Any]:
        candidates = op.Abs(op.Gather(matrix, column, axis=-1))
        eligible = op.Where(op.GreaterOrEqual(index, column), candidates, _exact(-1))
        chosen = op.Unsqueeze(op.ArgMax(eligible, axis=-1, keepdims=1), whole(-1))
        is_chosen, is_here = op.Equal(rows, chosen), op.Equal(rows, column)
        here = op.Unsqueeze(op.Gather(matrix, column, axis=-2), whole(-2))
        pivot_row = op.ReduceSum(op.Where(is_chosen, matrix, _exact(0)), whole(-2), keepdims=1)
        swapped = op.Where(is_here, pivot_row, op.Where(is_chosen, here, matrix))
        pivot = op.Unsqueeze(op.Gather(pivot_row, column, axis=-1), whole(-1))
        scaled = op.Div(pivot_row, pivot)
        factors = op.Unsqueeze(op.Gather(swapped, column, axis=-1), whole(-1))
        cleared = op.Where(is_here, scaled, op.Sub(swapped, op.Mul(factors, scaled)))
        turned = op.Where(op.Equal(chosen, column), _exact(1), _exact(-1))
        return cleared, op.Mul(sign, op.Mul(turned, op.Sign(pivot))), op.Add(logarithm, op.Log(op.Abs(pivot)))

    types = [DOUBLE, DOUBLE, DOUBLE, INT64]
    matrix, sign, logarithm = scan([work, sign, logarithm], [index], types, step, last=True)
    return matrix, sign, logarithm


def _solved(a: Any, b: Any, many: Any) -> Any:
    """The x with a @ x = b, in double."""
    work, _, _ = _eliminate(op.Concat(a, b, axis=-1), many)
    return op.Slice(work, many, whole(2**62), whole(-1))


def _no_error(x: ir.Value) -> Any:
    """What tells torch of a singular matrix: zero for every one."""
    batch = op.Shape(x, start=0, end=rank(x) - 2)
    return op.Expand(op.Constant(value=ir.tensor(0, dtype=ir.DataType.INT32)), batch)


def _inverse(a: ir.Value, *, check_errors: bool = False) -> tuple[Any, Any]:
    del check_errors
    wide = op.Cast(a, to=DOUBLE)
    return op.CastLike(_solved(wide, _identity_like(wide), size_of(a, rank(a) - 1)), a), _no_error(a)


def _solve(a: ir.Value, b: ir.Value, *, left: bool = True, check_errors: bool = False) -> tuple[Any, ...]:
    del check_errors
    axes = rank(a)
    is_vector = rank(b) == 1 or (rank(b) == axes - 1 and list(b.shape or ()) == list(a.shape or ())[:-1])
    wide = op.Cast(a, to=DOUBLE)
    right = op.Cast(op.Unsqueeze(b, whole(-1)) if is_vector else b, to=DOUBLE)
    result = _in_batches(wide, right, axes, rank(b) + is_vector, size_of(a, axes - 1), left=left or is_vector)
    narrow = op.CastLike(op.Squeeze(result, whole(-1)) if is_vector else result, b)
    # the factors are for gradients only
    return narrow, op.Identity(a), op.Cast(counted(size_of(a, axes - 1)), to=ir.DataType.INT32), _no_error(a)


def _in_batches(a: Any, b: Any, axes: int, axes_of_b: int, many: Any, *, left: bool) -> Any:
    """Both broadcast against each other but for the last two axes; from the right, all is transposed."""
    if not left:
        return _flipped(
            _in_batches(_flipped(a, axes), _flipped(b, axes_of_b), axes, axes_of_b, many, left=True),
            max(axes, axes_of_b),
        )
    batch_a, batch_b = op.Shape(a, start=0, end=axes - 2), op.Shape(b, start=0, end=axes_of_b - 2)
    if axes > 2 or axes_of_b > 2:
        ones_a, ones_b = (op.Concat(batch, whole(1, 1), axis=0) for batch in (batch_a, batch_b))
        a, b = op.Mul(a, op.Expand(_exact(1), ones_b)), op.Mul(b, op.Expand(_exact(1), ones_a))
    return _solved(a, b, many)


def _solve_triangular(a: ir.Value, b: ir.Value, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    wide = op.Trilu(op.Cast(a, to=DOUBLE), as_scalar(int(unitriangular) * (1 if upper else -1)), upper=int(upper))
    if unitriangular:
        wide = op.Add(wide, _identity_like(wide))
    solved = _in_batches(wide, op.Cast(b, to=DOUBLE), rank(a), rank(b), size_of(a, rank(a) - 1), left=left)
    return op.CastLike(solved, b)


def _determinant(a: ir.Value) -> tuple[Any, ...]:
    """Sign and logarithm; the factors are for gradients only."""
    _, sign, logarithm = _eliminate(op.Cast(a, to=DOUBLE), size_of(a, rank(a) - 1))
    sign, logarithm = (op.CastLike(op.Squeeze(value, whole(-2, -1)), a) for value in (sign, logarithm))
    return sign, logarithm, op.Identity(a), op.Cast(counted(size_of(a, rank(a) - 1)), to=ir.DataType.INT32)


def _cholesky(a: ir.Value, *, upper: bool = False, check_errors: bool = False) -> tuple[Any, Any]:
    """Column by column; what a column explains is taken off the rest."""
    del check_errors
    axes = rank(a)
    index = counted(size_of(a, axes - 1))

    def step(rest: Any, column: Any) -> tuple[Any, Any]:
        values = op.Gather(rest, column, axis=-1)
        pivot = op.Unsqueeze(op.Gather(values, column, axis=-1), whole(-1))
        scaled = op.Where(op.GreaterOrEqual(index, column), op.Div(values, op.Sqrt(pivot)), _exact(0))
        outer = op.Mul(op.Unsqueeze(scaled, whole(-1)), op.Unsqueeze(scaled, whole(-2)))
        return op.Sub(rest, outer), scaled

    (columns,) = scan([op.Cast(a, to=DOUBLE)], [index], [DOUBLE, INT64], step)
    lower = moved(columns, 0, axes - 1, axes)
    return op.CastLike(_flipped(lower, axes) if upper else lower, a), _no_error(a)


def _solve_by_factor(b: ir.Value, factor: ir.Value, upper: bool = False) -> Any:
    wide = op.Cast(factor, to=DOUBLE)
    other = _flipped(wide, rank(factor))
    product = op.MatMul(other, wide) if upper else op.MatMul(wide, other)
    many = size_of(factor, rank(factor) - 1)
    return op.CastLike(_in_batches(product, op.Cast(b, to=DOUBLE), rank(factor), rank(b), many, left=True), b)


def _inverse_by_factor(factor: ir.Value, upper: bool = False) -> Any:
    wide = op.Cast(factor, to=DOUBLE)
    other = _flipped(wide, rank(factor))
    product = op.MatMul(other, wide) if upper else op.MatMul(wide, other)
    return op.CastLike(_solved(product, _identity_like(wide), size_of(factor, rank(factor) - 1)), factor)


_HALVINGS, _TERMS = 10, 14


def _exponential(a: ir.Value) -> Any:
    """The exponential of a small part by its series, squared as often as the part was halved."""
    small = op.Mul(op.Cast(a, to=DOUBLE), _exact(0.5**_HALVINGS))
    unit = _identity_like(small)
    total = unit
    for term in range(_TERMS, 0, -1):
        total = op.Add(unit, op.Mul(op.MatMul(small, total), _exact(1 / term)))
    for _ in range(_HALVINGS):
        total = op.MatMul(total, total)
    return op.CastLike(total, a)


def _first(function: Callable[..., Any]) -> Callable[..., Any]:
    """What users call gives the result alone; torch would check it for errors, which has no translation."""
    return lambda *args, **kwargs: function(*args, **kwargs)[0]


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::inverse": _first(_inverse),
    "aten::linalg_inv": _first(_inverse),
    "aten::linalg_solve": _first(_solve),
    "aten::linalg_cholesky": _first(_cholesky),
    "aten::cholesky": lambda a, upper=False: _cholesky(a, upper=upper)[0],
    "aten::linalg_inv_ex": _inverse,
    "aten::_linalg_solve_ex": _solve,
    "aten::linalg_solve_triangular": _solve_triangular,
    "aten::_linalg_slogdet": _determinant,
    "aten::linalg_cholesky_ex": _cholesky,
    "aten::cholesky_solve": _solve_by_factor,
    "aten::cholesky_inverse": _inverse_by_factor,
    "aten::linalg_matrix_exp": _exponential,
}


def scan(
    begin: Sequence[Any],
    scanned: Sequence[Any],
    types: Sequence[Any],
    step: Callable[..., Sequence[Any]],
    *,
    last: bool = False,
) -> list[Any]:
    """An ONNX Scan over the first axis; `types` are those of the states, then those of what is scanned.

    `step` returns the new states and, if it has others than these, the outputs. What comes back are the outputs of all
    steps, stacked, or the `last` states.
    """
    before = [ir.Value(name=f"before_{i}", type=ir.TensorType(kind)) for i, kind in enumerate(types[: len(begin)])]
    slices = [ir.Value(name=f"slice_{i}", type=ir.TensorType(kind)) for i, kind in enumerate(types[len(begin) :])]
    with recurrent.recorded_apart() as nodes:
        states, outputs = _parted(step(*before, *slices), len(begin), last=last)
    graph = ir.Graph([*before, *slices], [*states, *outputs], nodes=nodes, name="step")
    attributes = {"body": graph, "num_scan_inputs": len(slices)}
    results = recurrent.record("Scan", [*begin, *scanned], attributes, len(states) + len(outputs))
    return results[: len(begin)] if last else results[len(begin) :]


def _parted(results: Sequence[Any], states: int, *, last: bool) -> tuple[list[Any], list[Any]]:
    after = list(results[:states])
    if last:
        return after, []
    outputs = list(results[states:]) or [op.Identity(state) for state in after]
    return after, outputs


def _first_slice(x: Any) -> Any:
    return op.Squeeze(op.Slice(x, whole(0), whole(1), whole(0)), whole(0))


def _extremes(better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
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
        values, places = scan([first, place], [front, steps], [x.dtype, INT64, x.dtype, INT64], step)
        return moved(values, 0, axis, axes), moved(places, 0, axis, axes)

    return translate


def _product(x: ir.Value, dim: int, *, dtype: int | None = None) -> Any:
    kind = ir.DataType(dtype) if dtype not in (None, -1) else x.dtype
    if kind is not None and kind in (ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32):
        kind = INT64 if dtype in (None, -1) else kind
    typed = x if kind == x.dtype else op.Cast(x, to=kind)
    if rank(x) == 0:
        return op.Identity(typed)
    axis, axes = from_front(dim, x), rank(x)
    front = moved(typed, axis, 0, axes)
    ones = op.Expand(op.Constant(value=ir.tensor(1, dtype=kind)), op.Shape(_first_slice(front)))
    (products,) = scan([ones], [front], [kind, kind], lambda so_far, now: [op.Mul(so_far, now)])
    return moved(products, 0, axis, axes)


CUMULATIVE: dict[str, Callable[..., Any]] = {
    "aten::cummax": _extremes(op.GreaterOrEqual),
    "aten::cummin": _extremes(op.LessOrEqual),
    "aten::cumprod": _product,
}


def _distances(left: ir.Value, right: ir.Value, p: float, compute_mode: int | None = None) -> Any:
    del compute_mode  # how torch computes it, not what
    if p == 2:
        return _euclidean(left, right)
    gaps = op.Abs(op.Sub(op.Unsqueeze(left, whole(-2)), op.Unsqueeze(right, whole(-3))))
    if p == 0:
        return op.ReduceSum(op.CastLike(op.Greater(gaps, number(0, left)), left), whole(-1), keepdims=0)
    if p == 1:
        return op.ReduceSum(gaps, whole(-1), keepdims=0)
    if math.isinf(p):
        return op.ReduceMax(gaps, whole(-1), keepdims=0)
    powers = op.ReduceSum(op.Pow(gaps, number(p, left)), whole(-1), keepdims=0)
    return op.Pow(powers, number(1 / p, left))


def _euclidean(left: ir.Value, right: ir.Value) -> Any:
    x, y = op.Cast(left, to=DOUBLE), op.Cast(right, to=DOUBLE)
    axes = max(rank(left), rank(right))
    flipped = [*range(axes - 2), axes - 1, axes - 2]
    if rank(right) < axes:
        y = op.Unsqueeze(y, whole(*range(axes - rank(right))))
    squares = op.ReduceSum(op.Mul(x, x), whole(-1), keepdims=1)
    others = op.Transpose(op.ReduceSum(op.Mul(y, y), whole(-1), keepdims=1), perm=flipped)
    products = op.MatMul(x, op.Transpose(y, perm=flipped))
    two, zero = (op.Constant(value=ir.tensor(value, dtype=DOUBLE)) for value in (2.0, 0.0))
    squared = op.Sub(op.Add(squares, others), op.Mul(two, products))
    return op.CastLike(op.Sqrt(op.Max(squared, zero)), left)


def _distances_within(x: ir.Value, p: float = 2.0) -> Any:
    """Each pair once: what stands above the diagonal, row by row."""
    index = counted(size_of(x, 0))
    above = op.Less(op.Unsqueeze(index, whole(1)), op.Unsqueeze(index, whole(0)))
    flat = op.Reshape(_distances(x, x, p), whole(-1))
    return op.Compress(flat, op.Reshape(above, whole(-1)), axis=0)


DISTANCES: dict[str, Callable[..., Any]] = {
    "aten::_cdist_forward": _distances,
    "aten::_pdist_forward": _distances_within,
}
