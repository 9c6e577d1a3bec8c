"""`1.0 - x` and `torch.rsub`: a number minus a tensor.

torch turns it into a subtraction whose first argument is a number; its own promotion of types finds no such operator
where `x` holds whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def rsub(tensor: Any, other: Any, alpha: Any = 1) -> Any:
    dtype = tensor.dtype
    if dtype not in _FLOATS and any(_is_fraction(number) for number in (other, alpha)):
        dtype = ir.DataType.FLOAT  # as PyTorch promotes, unless its default type was changed
    tensor, other = _as(tensor, dtype), _as(other, dtype)
    return op.Sub(other, tensor if alpha == 1 else op.Mul(tensor, _as(alpha, dtype)))


def _is_fraction(value: Any) -> bool:
    return value.dtype in _FLOATS if isinstance(value, ir.Value) else isinstance(value, float)


def _as(value: Any, dtype: Any) -> Any:
    if not isinstance(value, ir.Value):
        return op.Cast(op.Constant(value=ir.tensor(value)), to=dtype)
    return value if value.dtype == dtype else op.Cast(value, to=dtype)


TRANSLATIONS: dict[str, Callable[..., Any]] = {"aten::rsub.Scalar": rsub, "aten::rsub.Tensor": rsub}
