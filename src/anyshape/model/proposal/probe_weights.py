"""An axis that a weight fixes needs no search: seen by the operator that refuses another size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

_OF_ONE_INPUT = frozenset(
    (
        "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "embedding",
        "layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm", "matmul", "addmm", "add", "mul", "sub",
        "div", "__matmul__", "__rmatmul__", "__add__", "__radd__", "__iadd__", "__mul__", "__rmul__", "__sub__",
        "__truediv__",
    )
)  # fmt: skip
"""Operators of one input and a weight; in `bilinear` or `einsum` beside the weight stand several inputs."""


class WeightWatch(TorchFunctionMode):
    """Remembers whether the operator that failed has a weight among its operands."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._weights = {id(tensor) for tensor in itertools.chain(module.parameters(), module.buffers())}
        self.blames_weight = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        try:
            return func(*args, **(kwargs or {}))
        except Exception:
            operands = _tensors((*args, *(kwargs or {}).values()))
            fixes = any(id(tensor) in self._weights for tensor in operands)
            self.blames_weight = fixes and getattr(func, "__name__", "") in _OF_ONE_INPUT
            raise


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
