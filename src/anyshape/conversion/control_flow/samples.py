"""Names for sizes that have become long to say: `(s0 + 3)//4 + (7 - (s0 + 3)//4 % 7) % 7` is one symbol from here on.

Torch's symbols grow with every layer that pads, divides or chooses, and what it computes about them grows faster. A
named size is a symbol of which torch knows nothing; what it is at each of the samples is known, and answers for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from anyshape.conversion.control_flow.samples_sampling import Samples
from anyshape.conversion.control_flow.samples_slicing import length_of_slice
from anyshape.sizes.evaluation import Values

_LONG = 10
"""Sizes of at most so many symbols, numbers and operations stay as they are."""


def shortened(result: Any, samples: Samples) -> Any:
    """The same tensors and numbers, with names for their long sizes."""
    return pytree.tree_map(lambda leaf: _shortened(leaf, samples), result)


def _shortened(leaf: Any, samples: Samples) -> Any:
    if isinstance(leaf, torch.SymInt) and is_long(leaf):
        return named_size(leaf, samples.values(leaf.node.expr), samples)
    if isinstance(leaf, torch.Tensor):
        axes = [axis for axis, size in enumerate(leaf.shape) if is_long(size)]
        sizes: list[Any] = [leaf.shape[axis] for axis in axes]
        values = [samples.values(size.node.expr) for size in sizes]
        if axes and all(column is not None for column in values):
            named: torch.Tensor = torch.ops.anyshape.named(leaf, axes)
            for axis, column in zip(axes, values, strict=True):
                remember(named.shape[axis], column, samples)
            return named
    return leaf


class Naming(TorchFunctionMode):
    """Inside, what a function of torch gives back has short sizes."""

    def __init__(self, samples: Callable[[], Samples]) -> None:
        super().__init__()
        self._samples = samples

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        # who writes to a tensor means that tensor, and no copy of it
        is_new = isinstance(result, torch.Tensor) and not any(result is one for one in args)
        if is_new and func is torch.ops.aten.slice:  # export makes it of `x[:, a:b]`
            _remember_slice(result, self._samples(), *args)
        return _shortened(result, self._samples()) if is_new and func is not torch.ops.anyshape.named else result


def _remember_slice(
    result: torch.Tensor, samples: Samples, tensor: torch.Tensor, axis: int = 0, start: Any = None, end: Any = None,
    step: Any = 1,
) -> None:  # fmt: skip
    if step == 1:
        remember(result.shape[axis], length_of_slice(tensor.shape[axis], start, end, samples), samples)


def is_long(size: Any) -> bool:
    if not isinstance(size, torch.SymInt):
        return False
    parts = sympy.preorder_traversal(size.node.expr)
    return sum(1 for _ in itertools.islice(parts, _LONG + 1)) > _LONG


def named_size(size: Any, values: Values | None, samples: Samples) -> Any:
    """The number as a new symbol, by way of a tensor of one element."""
    if values is None:
        return size
    named = torch.scalar_tensor(size, dtype=torch.int64, device="cpu").item()
    remember(named, values, samples)
    return named


def recognise(before: Any, now: Any, samples: Samples) -> None:
    """A trace that is run again has new symbols for the same sizes."""
    for old, new in zip(pytree.tree_leaves(before), pytree.tree_leaves(now), strict=False):
        pairs = [(old, new)]
        if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor):
            pairs = list(zip(old.shape, new.shape, strict=False))
        for known, size in pairs:
            if isinstance(known, torch.SymInt) and isinstance(size, torch.SymInt):
                remember(size, samples.values(known.node.expr), samples)


def remember(size: Any, values: Values | None, samples: Samples) -> None:
    """What a new symbol is at each of the samples."""
    expression = size.node.expr if isinstance(size, torch.SymInt) else None
    if values is not None and isinstance(expression, sympy.Symbol) and expression not in samples.table.columns():
        samples.table.name(expression, samples.rows, values)
