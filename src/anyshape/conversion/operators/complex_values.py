"""Complex values that torch's translation lacks: they are real ones with one more axis of two at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import COMPLEX, as_scalar, number, op, rank, vector, whole


def _real_and_imaginary(x: Any) -> tuple[Any, Any]:
    real, imaginary = op.Split(x, axis=-1, num_outputs=2)
    return real, imaginary


def _with_parts(real: Any, imaginary: Any) -> Any:
    return op.Concat(real, imaginary, axis=-1)


def _axis_before_parts(dim: int) -> int:
    """An axis counted from the end stands before the one that is ours."""
    return dim - 1 if dim < 0 else dim


def _unsqueeze(x: ir.Value, dim: int) -> Any:
    return op.Unsqueeze(x, whole(_axis_before_parts(dim)))


def _select(x: ir.Value, dim: int, index: Any) -> Any:
    return op.Gather(x, as_scalar(index), axis=_axis_before_parts(dim))


def _expand(x: ir.Value, size: Sequence[Any], *, implicit: bool = False) -> Any:
    del implicit
    sizes = [1 if isinstance(wish, int) and wish == -1 else wish for wish in size]
    return op.Expand(x, vector([*sizes, 2]))


def _index(x: ir.Value, indices: Sequence[Any]) -> Any:
    if len(indices) != 1 or indices[0] is None or indices[0].dtype == ir.DataType.BOOL:
        raise NotImplementedError("several indices into complex values")
    return op.Gather(x, indices[0], axis=0)


def _exponential(x: ir.Value) -> Any:
    real, imaginary = _real_and_imaginary(x)
    return op.Mul(op.Exp(real), _with_parts(op.Cos(imaginary), op.Sin(imaginary)))


def _power(x: ir.Value, exponent: Any) -> Any:
    if exponent == 2:
        real, imaginary = _real_and_imaginary(x)
        both = op.Mul(real, imaginary)
        return _with_parts(op.Sub(op.Mul(real, real), op.Mul(imaginary, imaginary)), op.Add(both, both))
    raise NotImplementedError(f"complex values to the power of {exponent}")


def _repeat(x: ir.Value, repeats: Sequence[Any]) -> Any:
    new = len(repeats) + 1 - rank(x)
    wide = op.Unsqueeze(x, whole(*range(new))) if new else x
    return op.Tile(wide, vector([*repeats, 1]))


def _filled_under_mask(x: ir.Value, mask: ir.Value, value: Any) -> Any:
    if isinstance(value, complex | ir.Value):
        raise NotImplementedError("complex values filled with others than a real number")
    filler = _with_parts(*(op.Reshape(number(part, x), whole(1)) for part in (value, 0)))
    return op.Where(op.Unsqueeze(mask, whole(-1)), filler, x)


def _pad(x: ir.Value, pad: Sequence[Any], value: Any = 0) -> Any:
    """Torch counts the axes from the last one; the axis that is ours stays as it is."""
    if value != 0:
        raise NotImplementedError("complex values padded with others than zero")
    untouched = [0] * (rank(x) - 1 - len(pad) // 2)
    begins, ends = list(pad[::2])[::-1], list(pad[1::2])[::-1]
    return op.Pad(x, vector([*untouched, *begins, 0, *untouched, *ends, 0]))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    f"{COMPLEX}aten::unsqueeze": _unsqueeze,
    f"{COMPLEX}aten::select.int": _select,
    f"{COMPLEX}aten::expand": _expand,
    f"{COMPLEX}aten::index.Tensor": _index,
    f"{COMPLEX}aten::exp": _exponential,
    f"{COMPLEX}aten::pow.Tensor_Scalar": _power,
    f"{COMPLEX}aten::repeat": _repeat,
    f"{COMPLEX}aten::masked_fill.Scalar": _filled_under_mask,
    f"{COMPLEX}aten::constant_pad_nd": _pad,
}
