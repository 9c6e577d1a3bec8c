"""Matrices of any size, in batches: inverses, solutions, determinants, factors, exponentials; distances; groups.

ONNX has no operators for them. Elimination goes through the columns one by one, with the largest pivot, in an ONNX
Scan; everything is computed in double, so that another order of operations than LAPACK's does not show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import Tensor

from anyshape.conversion.operators.elementwise import power_by_products
from anyshape.conversion.operators.onnx_words import (
    DOUBLE,
    INT64,
    as_scalar,
    counted,
    exact,
    flipped,
    literal,
    moved,
    number,
    op,
    rank,
    scanned,
    size_of,
    static_size,
    whole,
)
from anyshape.conversion.operators.repair import Repair, Used, answering
from anyshape.conversion.speed.operator_table import define

# ---- elimination


def _identity_like(x: Any) -> Any:
    """Ones on the diagonal of the last two axes, in as many batches."""
    index = counted(op.Shape(x, start=-1))
    unit = op.Cast(op.Equal(op.Unsqueeze(index, whole(0)), op.Unsqueeze(index, whole(1))), to=DOUBLE)
    return op.Expand(unit, op.Shape(x))


def _eliminate(work: Any, many: Any, *, divides_by_zero: bool = False) -> tuple[Any, Any, Any]:
    """Gauss and Jordan: the first columns become the identity; also the sign and the logarithm of the determinant.

    `work` is (..., n, m) in double, `many` is n. A singular matrix has a column of zeros: it stays as it is, and the
    determinant is zero; or it is divided by zero, since there is no solution.
    """
    index = counted(many)
    rows = op.Unsqueeze(index, whole(1))
    each = op.Concat(op.Shape(work, start=0, end=-2), whole(1, 1), axis=0)
    sign, logarithm = op.Expand(exact(1), each), op.Expand(exact(0), each)

    def step(matrix: Any, sign: Any, logarithm: Any, column: Any) -> tuple[Any, Any, Any]:
        candidates = op.Abs(op.Gather(matrix, column, axis=-1))
        # NaN is larger than nothing, and would leave the choice to a row that is done
        candidates = op.Where(op.IsNaN(candidates), exact(math.inf), candidates)
        eligible = op.Where(op.GreaterOrEqual(index, column), candidates, exact(-1))
        chosen = op.Unsqueeze(op.ArgMax(eligible, axis=-1, keepdims=1), whole(-1))
        is_chosen, is_here = op.Equal(rows, chosen), op.Equal(rows, column)
        here = op.Unsqueeze(op.Gather(matrix, column, axis=-2), whole(-2))
        pivot_row = op.ReduceSum(op.Where(is_chosen, matrix, exact(0)), whole(-2), keepdims=1)
        swapped = op.Where(is_here, pivot_row, op.Where(is_chosen, here, matrix))
        pivot = op.Unsqueeze(op.Gather(pivot_row, column, axis=-1), whole(-1))
        divisor = pivot if divides_by_zero else op.Where(op.Equal(pivot, exact(0)), exact(1), pivot)
        scaled = op.Div(pivot_row, divisor)
        factors = op.Unsqueeze(op.Gather(swapped, column, axis=-1), whole(-1))
        cleared = op.Where(is_here, scaled, op.Sub(swapped, op.Mul(factors, scaled)))
        turned = op.Where(op.Equal(chosen, column), exact(1), exact(-1))
        return cleared, op.Mul(sign, op.Mul(turned, _sign(pivot))), op.Add(logarithm, op.Log(op.Abs(pivot)))

    types = [DOUBLE, DOUBLE, DOUBLE, INT64]
    matrix, sign, logarithm = scanned([work, sign, logarithm], [index], types, step, last=True)
    return matrix, sign, logarithm


def _sign(x: Any) -> Any:
    """In double; 0 of NaN, as in PyTorch."""
    return op.Sub(op.Cast(op.Greater(x, exact(0)), to=DOUBLE), op.Cast(op.Less(x, exact(0)), to=DOUBLE))


def _solution(a: Any, b: Any, many: Any) -> Any:
    """The x with a @ x = b, in double."""
    work, _, _ = _eliminate(op.Concat(a, b, axis=-1), many, divides_by_zero=True)
    return op.Slice(work, many, whole(2**62), whole(-1))


# ---- what torch computes by LAPACK


def _no_error(x: ir.Value) -> Any:
    """What tells torch of a singular matrix: zero for every one."""
    batch = op.Shape(x, start=0, end=rank(x) - 2)
    return op.Expand(literal(0, ir.DataType.INT32), batch)


def _inverse(a: ir.Value, **_checks: Any) -> tuple[Any, Any]:
    wide = op.Cast(a, to=DOUBLE)
    return op.CastLike(_solution(wide, _identity_like(wide), size_of(a, rank(a) - 1)), a), _no_error(a)


def _solve(a: ir.Value, b: ir.Value, *, left: bool = True, **_checks: Any) -> tuple[Any, ...]:
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
        return flipped(
            _in_batches(flipped(a, axes), flipped(b, axes_of_b), axes, axes_of_b, many, left=True),
            max(axes, axes_of_b),
        )
    batch_a, batch_b = op.Shape(a, start=0, end=axes - 2), op.Shape(b, start=0, end=axes_of_b - 2)
    if axes > 2 or axes_of_b > 2:
        ones_a, ones_b = (op.Concat(batch, whole(1, 1), axis=0) for batch in (batch_a, batch_b))
        a, b = op.Mul(a, op.Expand(exact(1), ones_b)), op.Mul(b, op.Expand(exact(1), ones_a))
    return _solution(a, b, many)


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


def _log_of_determinant(a: ir.Value) -> Any:
    """Torch's translation takes the logarithm of the determinant, which overflows."""
    sign, logarithm, *_ = _determinant(a)
    return op.Where(op.Less(sign, number(0, a)), number(math.nan, a), logarithm)


def _cholesky(a: ir.Value, *, upper: bool = False, **_checks: Any) -> tuple[Any, Any]:
    """Column by column; what a column explains is taken off the rest."""
    axes = rank(a)
    index = counted(size_of(a, axes - 1))

    def step(rest: Any, column: Any) -> tuple[Any, Any]:
        values = op.Gather(rest, column, axis=-1)
        pivot = op.Unsqueeze(op.Gather(values, column, axis=-1), whole(-1))
        scaled = op.Where(op.GreaterOrEqual(index, column), op.Div(values, op.Sqrt(pivot)), exact(0))
        outer = op.Mul(op.Unsqueeze(scaled, whole(-1)), op.Unsqueeze(scaled, whole(-2)))
        return op.Sub(rest, outer), scaled

    (columns,) = scanned([op.Cast(a, to=DOUBLE)], [index], [DOUBLE, INT64], step)
    lower = moved(columns, 0, axes - 1, axes)
    return op.CastLike(flipped(lower, axes) if upper else lower, a), _no_error(a)


def _product_of_factor(factor: ir.Value, *, upper: bool) -> tuple[Any, Any]:
    """The matrix that it is a factor of, and the factor in double; what stands in its other triangle is not read."""
    wide = op.Trilu(op.Cast(factor, to=DOUBLE), upper=int(upper))
    other = flipped(wide, rank(factor))
    return op.MatMul(other, wide) if upper else op.MatMul(wide, other), wide


def _solve_by_factor(b: ir.Value, factor: ir.Value, upper: bool = False) -> Any:
    product, _ = _product_of_factor(factor, upper=upper)
    many = size_of(factor, rank(factor) - 1)
    return op.CastLike(_in_batches(product, op.Cast(b, to=DOUBLE), rank(factor), rank(b), many, left=True), b)


def _inverse_by_factor(factor: ir.Value, upper: bool = False) -> Any:
    product, wide = _product_of_factor(factor, upper=upper)
    return op.CastLike(_solution(product, _identity_like(wide), size_of(factor, rank(factor) - 1)), factor)


# norms up to 500 are below a half then, where the fifteenth term of the series is below the last digit of double
_HALVINGS, _TERMS = 10, 14


def _exponential(a: ir.Value) -> Any:
    """The exponential of a small part by its series, squared as often as the part was halved."""
    small = op.Mul(op.Cast(a, to=DOUBLE), exact(0.5**_HALVINGS))
    unit = _identity_like(small)
    total = unit
    for term in range(_TERMS, 0, -1):
        total = op.Add(unit, op.Mul(op.MatMul(small, total), exact(1 / term)))
    for _ in range(_HALVINGS):
        total = op.MatMul(total, total)
    return op.CastLike(total, a)


def _power(a: ir.Value, n: int) -> Any:
    """By squaring; of a negative power, the inverse."""
    if n == 0:
        return op.CastLike(_identity_like(a), a)
    return power_by_products(_inverse(a)[0] if n < 0 else a, abs(n), op.MatMul)


# ---- distances between all rows of two sets (`torch.cdist`) or of one (`F.pdist`)

# Euclidean distances come from products, in double: of two equal rows the difference of large squares would not be 0 in
# float32, and all differences at once would take the memory of both sets times the features. Other norms need them.


def _distances(left: ir.Value, right: ir.Value, p: float, _how_torch_computes_it: int | None = None) -> Any:
    if p == 2:
        return _euclidean(left, right)
    gaps = op.Abs(op.Sub(op.Unsqueeze(left, whole(-2)), op.Unsqueeze(right, whole(-3))))
    if p == 0:  # NaN stays NaN
        return op.ReduceSum(op.Min(op.Ceil(gaps), number(1, left)), whole(-1), keepdims=0)
    if p == 1:
        return op.ReduceSum(gaps, whole(-1), keepdims=0)
    if math.isinf(p):
        return op.ReduceMax(gaps, whole(-1), keepdims=0)
    powers = op.ReduceSum(op.Pow(gaps, number(p, left)), whole(-1), keepdims=0)
    return op.Pow(powers, number(1 / p, left))


def _euclidean(left: ir.Value, right: ir.Value) -> Any:
    x, y = op.Cast(left, to=DOUBLE), op.Cast(right, to=DOUBLE)
    axes = max(rank(left), rank(right))
    if rank(right) < axes:
        y = op.Unsqueeze(y, whole(*range(axes - rank(right))))
    squares = op.ReduceSum(op.Mul(x, x), whole(-1), keepdims=1)
    others = flipped(op.ReduceSum(op.Mul(y, y), whole(-1), keepdims=1), axes)
    products = op.MatMul(x, flipped(y, axes))
    two, zero = exact(2), exact(0)
    squared = op.Sub(op.Add(squares, others), op.Mul(two, products))
    return op.CastLike(op.Sqrt(op.Max(squared, zero)), left)


def _distances_within(x: ir.Value, p: float = 2.0) -> Any:
    """Each pair once: what stands above the diagonal, row by row."""
    index = counted(size_of(x, 0))
    above = op.Less(op.Unsqueeze(index, whole(1)), op.Unsqueeze(index, whole(0)))
    flat = op.Reshape(_distances(x, x, p), whole(-1))
    return op.Compress(flat, op.Reshape(above, whole(-1)), axis=0)


# ---- grouped products of mixtures of experts: rows sorted by expert, each group by the weights of its own

# Recognised: `F.grouped_mm` in other types than bfloat16, which alone torch's shape function knows, though its kernel
# does not mind. Put there: an operator of the same meaning. `offs` says where each group ends. The number of experts is
# fixed, the lengths of the groups are not: each group is cut out at run time, and groups without rows give none. Rows
# behind the last group are zero.


def _shape_of_product(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    if weight.ndim == 3:
        return x.new_empty((x.shape[0], weight.shape[2]))
    return x.new_empty((ends.shape[0], x.shape[0], weight.shape[1]))


define("anyshape_sizes::grouped_mm", "(Tensor x, Tensor weight, Tensor ends) -> Tensor", _shape_of_product)


def _products_by_group(used: Used, mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, **named: Any) -> Any:
    if mat_a.ndim != 2 or offs is None or any(value is not None for value in named.values()):
        return NotImplemented
    used("F.grouped_mm: a product for each group")
    return torch.ops.anyshape_sizes.grouped_mm(mat_a, mat_b, offs)


EXPERTS = Repair("grouped products", answering({(F, "grouped_mm"): _products_by_group}))


def _starts_and_ends(borders: Any, groups: int) -> Iterator[tuple[Any, Any]]:
    for group in range(groups):
        start = op.Slice(borders, whole(group), whole(group + 1))
        yield start, op.Slice(borders, whole(group + 1), whole(group + 2))


def _rows_by_group(x: ir.Value, weight: ir.Value, ends: ir.Value) -> Any:
    many = static_size(weight, 0)
    if many is None:
        raise NotImplementedError("grouped products with a dynamic number of experts")
    borders = op.Concat(whole(0), op.Cast(ends, to=INT64), axis=0)
    parts = [
        op.MatMul(op.Slice(x, start, end, whole(0)), op.Gather(weight, literal(group), axis=0))
        for group, (start, end) in enumerate(_starts_and_ends(borders, many))
    ]
    left_over = op.Sub(size_of(x, 0), op.Slice(borders, whole(many), whole(many + 1)))
    shape = op.Concat(left_over, size_of(weight, 2), axis=0)
    return op.Concat(*parts, op.Expand(number(0, x), shape), axis=0)


def _columns_by_group(x: ir.Value, weight: ir.Value, ends: ir.Value, groups: int) -> Any:
    """Both have two axes: the inner one, over which is summed, is in groups."""
    borders = op.Concat(whole(0), op.Cast(ends, to=INT64), axis=0)
    parts = [
        op.Unsqueeze(op.MatMul(op.Slice(x, start, end, whole(1)), op.Slice(weight, start, end, whole(0))), whole(0))
        for start, end in _starts_and_ends(borders, groups)
    ]
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


# ---- the table's entries


def _result_alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """What users call gives the result alone; torch would check it for errors, which has no translation."""
    return lambda *args, **kwargs: function(*args, **kwargs)[0]


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::inverse": _result_alone(_inverse),
    "aten::linalg_inv": _result_alone(_inverse),
    "aten::linalg_solve": _result_alone(_solve),
    "aten::linalg_cholesky": _result_alone(_cholesky),
    "aten::cholesky": lambda a, upper=False: _cholesky(a, upper=upper)[0],
    "aten::linalg_inv_ex": _inverse,
    "aten::_linalg_solve_ex": _solve,
    "aten::linalg_solve_triangular": _solve_triangular,
    "aten::_linalg_slogdet": _determinant,
    "aten::logdet": _log_of_determinant,
    "aten::linalg_cholesky_ex": _cholesky,
    "aten::cholesky_solve": _solve_by_factor,
    "aten::cholesky_inverse": _inverse_by_factor,
    "aten::linalg_matrix_exp": _exponential,
    "aten::matrix_power": _power,
    "aten::linalg_matrix_power": _power,
    "aten::_cdist_forward": _distances,
    "aten::_pdist_forward": _distances_within,
    "aten::_grouped_mm": _grouped_product,
    "anyshape_sizes::grouped_mm": _grouped_product,
    "transformers::grouped_mm_fallback": _grouped_product,
}
