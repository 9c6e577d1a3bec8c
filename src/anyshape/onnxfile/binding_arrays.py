"""What may be given as an input: a numpy array, a tensor of torch or of others, a number.

Nothing is cast, and nothing copied but what lies on another device. torch is not imported: who gives a tensor has it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from anyshape.errors import DeclarationError

Array = np.ndarray[Any, Any]


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch."""
    torch = sys.modules.get("torch")
    # torch's own isinstance takes as long as the rest of the check
    return torch is not None and (type(value) is torch.Tensor or isinstance(value, torch.Tensor))


def as_array(name: str, value: Any, dtype: np.dtype[Any] | None, rank: int | None) -> Any:
    """The array behind a value; numbers become one where the input has no axes, texts and the like stay."""
    if hasattr(value, "__array__"):
        return np.asarray(value)
    if isinstance(value, (bool, int, float)):
        return _from_number(name, value, dtype, rank)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if dtype is None:  # texts, or a sequence or a map, of which the runtime knows better
        return value if rank is None else np.asarray(value)
    raise DeclarationError(f"`{name}` takes an array of {dtype}, not `{type(value).__name__}`")


def from_tensor(name: str, tensor: Any) -> Array:
    """The array that shares a tensor's memory; a copy of what lies on another device."""
    try:
        return tensor.numpy()  # type: ignore[no-any-return]
    except (RuntimeError, TypeError):
        return _forced(name, tensor)


def _forced(name: str, tensor: Any) -> Array:
    try:
        return tensor.numpy(force=True)  # type: ignore[no-any-return]
    except TypeError:
        kind = str(tensor.dtype).removeprefix("torch.")
        raise DeclarationError(f"`{name}` is {kind}, of which numpy has no arrays: use `session`") from None


_SUITS: tuple[tuple[type, str], ...] = ((bool, "b"), (int, "iuf"), (float, "f"))
"""Which kinds of dtypes a Python number may become."""


def _from_number(name: str, value: float, dtype: np.dtype[Any] | None, rank: int | None) -> Array:
    if dtype is None or rank not in (0, None):
        raise DeclarationError(f"`{name}` takes an array, not the number {value!r}")
    if dtype.kind not in next(kinds for kind, kinds in _SUITS if isinstance(value, kind)):
        raise DeclarationError(f"`{name}` is the {type(value).__name__} {value!r}, but takes {dtype}")
    try:
        return np.array(value, dtype)
    except OverflowError:
        raise DeclarationError(f"`{name}` = {value} does not fit into {dtype}") from None


def like(tensor: Any, results: list[Any]) -> list[Any]:
    """Results as tensors on the device of this one, without a copy on the CPU; what is no array of numbers stays."""
    make = sys.modules["torch"].from_numpy
    made = [make(r) if isinstance(r, np.ndarray) and r.dtype.kind in "biufc" else r for r in results]
    return made if tensor.is_cpu else [one.to(tensor.device) if is_tensor(one) else one for one in made]
