"""Whether a file holds other weights than its model: then no line of the source is to blame for other values.

A converter may rename, transpose, reorder, scale, join or narrow what a model holds, and none of that is another
weight. Values in another order have the same sum of their bits; folding a norm or a scale into a weight leaves its rows
or its columns proportional. What is joined or computed has no counterpart and says nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn

from anyshape.onnxfile.untrusted import stored_tensors

_Array = np.ndarray[Any, Any]
_SLACK: Mapping[int, float] = {
    onnx.TensorProto.FLOAT: 1e-4,
    onnx.TensorProto.DOUBLE: 1e-4,
    onnx.TensorProto.FLOAT16: 2e-3,
    onnx.TensorProto.BFLOAT16: 2e-2,
}
"""By how much of its length a row of such numbers may differ: several times what each of them is rounded by."""
_AT_ONCE = 1 << 22
"""Numbers whose bits are summed at once: a copy of them has eight bytes for each."""


@dataclass(frozen=True)
class OtherWeights:
    """Weights of a model whose counterparts in a file hold other values."""

    names: tuple[str, ...]
    total: int
    """How many weights have a counterpart at all."""


def other_weights(proto: onnx.ModelProto, folder: Path, module: nn.Module) -> OtherWeights | None:
    """What differs, or nothing where file and model agree, or where that cannot be told."""
    stored = dict(_stored_arrays(proto, folder))
    slack = max((_SLACK.get(tensor.data_type, 0) for tensor in stored_tensors(proto.graph)), default=0)
    held = {name: _as_array(value) for name, value in _weights_of(module)}
    unclaimed, kept = dict(stored), []
    signatures = {_signature(array): name for name, array in stored.items()}
    for name, array in held.items():
        if (found := signatures.get(_signature(array))) is not None:
            unclaimed.pop(found, None)
            kept.append(name)
    verdicts = {name: _is_other(name, array, unclaimed, slack) for name, array in held.items() if name not in kept}
    others = [name for name, is_other in verdicts.items() if is_other]
    same = [*kept, *(name for name, is_other in verdicts.items() if is_other is False)]
    by_name = [name for name in others if name in unclaimed]
    # a product that was folded may have the shape of a weight by chance; the name of one it has not
    told = others if len(others) > len(same) else by_name
    return OtherWeights(tuple(told), len(others) + len(same)) if told else None


def _weights_of(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """What is worth comparing: floats in rows, or in one row where there is nothing else."""
    floats = {name: value.detach() for name, value in module.state_dict().items() if _is_float(value)}
    deep = {name: value for name, value in floats.items() if value.squeeze().dim() > 1}
    yield from (deep or {name: value for name, value in floats.items() if value.numel() > 1}).items()


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.device.type != "meta"


def _as_array(value: torch.Tensor) -> _Array:
    found: _Array = value.to("cpu", torch.float32).squeeze().numpy()
    return found


def _stored_arrays(proto: onnx.ModelProto, folder: Path) -> Iterator[tuple[str, _Array]]:
    for number, tensor in enumerate(stored_tensors(proto.graph)):
        if tensor.data_type in _SLACK:
            with contextlib.suppress(Exception):  # a tensor that cannot be read is not compared
                array = onnx.numpy_helper.to_array(tensor, str(folder))
                yield tensor.name or f"#{number}", array.astype(np.float32).squeeze()


def _signature(array: _Array) -> tuple[int, int, int]:
    """The same for the same values in any order and shape."""
    bits, total, squares = np.ravel(array).view(np.uint32), 0, 0
    for start in range(0, array.size, _AT_ONCE):
        part = bits[start : start + _AT_ONCE].astype(np.uint64)
        total += int(part.sum(dtype=np.uint64))
        squares += int((part * part).sum(dtype=np.uint64))  # modulo 2**64, which is as good
    return array.size, total, squares % (1 << 64)


def _is_other(name: str, array: _Array, unclaimed: Mapping[str, _Array], slack: float) -> bool | None:
    """Whether a weight's counterpart holds other values; None where it has none."""
    named = unclaimed.get(name)
    found = [named] if named is not None and named.size == array.size else list(unclaimed.values())
    alike = [one for candidate in found for one in _in_shape(candidate, array.shape)]
    return None if not alike else not any(_is_scaled(array, one, slack) for one in alike)


def _in_shape(array: _Array, shape: Sequence[int]) -> Iterator[_Array]:
    if array.shape == tuple(shape):
        yield array
    if array.ndim == 2 and array.T.shape == tuple(shape):
        yield array.T


def _is_scaled(left: _Array, right: _Array, slack: float) -> bool:
    """Whether rows or columns of one are those of the other times a number each."""
    if left.ndim < 2:
        return bool(np.linalg.norm(left - right) <= slack * np.linalg.norm(left))
    flat = [(one.reshape(len(one), -1), np.moveaxis(one, 1, 0).reshape(one.shape[1], -1)) for one in (left, right)]
    return any(_rows_are_parallel(mine, its, slack) for mine, its in zip(*flat, strict=True))


def _rows_are_parallel(left: _Array, right: _Array, slack: float) -> bool:
    left, right = left.astype(np.float64), right.astype(np.float64)
    scale = (left * right).sum(1) / np.maximum((left * left).sum(1), np.finfo(np.float64).tiny)
    rest = np.linalg.norm(right - scale[:, None] * left, axis=1)
    return bool((rest <= slack * np.maximum(np.linalg.norm(right, axis=1), 1e-30)).all())
