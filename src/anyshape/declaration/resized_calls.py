"""Valid calls at other sizes, made from the user's one example call.

Shapes alone do not make a call valid: lengths stay below the sequence, edges point at nodes that exist, position ids
go on counting, rows of probabilities sum to one. And a wrong file must not be able to hide: no slice is a copy of
another where the example allows it, and a second content shows what the example does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from anyshape.declaration.resize_rules import Example, LeafResizing, ValueRange, resized_tensor

LEVELS = 3
"""The ladder a caller climbs while the model refuses: 0 meaningful content; 1 tiled; 2 the edge repeated and integers
kept below the dims that shrank. From 1 on a second content differs in its floats alone."""


def resize(
    example: Example,
    sizes: Mapping[str, int],
    *,
    ranges: Mapping[str, ValueRange],
    content: int = 0,
    level: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """All leaves of a call at these sizes.

    `content` 0 keeps the example's values as far as they go; each other number is another content, which shows what
    the example does not: ragged masks, other values. The same arguments give the same leaves.
    """
    if content == 0 and all(sizes[dim] == size for dim, size in example.sizes.items()):
        return {name: _without_gradient(leaf) for name, leaf in example.leaves.items()}
    resized: dict[str, Any] = {}
    for name, leaf in example.leaves.items():
        if name in example.scalars:
            resized[name] = example.scalars[name].value(sizes)
        elif isinstance(leaf, Tensor):
            axes = example.axes.get(name, (None,) * leaf.dim())
            shape = tuple(n if e is None else e.value(sizes) for n, e in zip(leaf.shape, axes, strict=True))
            wide = leaf.detach().cpu().to(_wide_dtype(leaf.dtype))
            lot = torch.Generator().manual_seed(_leaf_seed(seed, content, name, sizes))
            bound, is_second = ranges.get(name), content > 0
            resizing = LeafResizing(example, sizes, wide, axes, shape, bound, is_second, level, _tolerance(leaf), lot)
            resized[name] = _in_own_type(resized_tensor(resizing), resizing, leaf)
        else:
            resized[name] = leaf
    return resized


def _without_gradient(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, Tensor) and leaf.requires_grad else leaf


def _leaf_seed(seed: int, content: int, name: str, sizes: Mapping[str, int]) -> int:
    text = repr((seed, content, name, sorted(sizes.items())))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def _tolerance(leaf: Tensor) -> float:
    return 1e-4 + 2 * torch.finfo(leaf.dtype).eps if leaf.is_floating_point() else 1e-4


def _wide_dtype(dtype: torch.dtype) -> torch.dtype:
    # uint16 and its like have hardly any operations, half floats too few digits to mix
    if dtype.is_complex:
        return torch.complex128
    if dtype.is_floating_point:
        return torch.float64
    return dtype if dtype == torch.bool else torch.int64


def _in_own_type(result: Tensor, resizing: LeafResizing, leaf: Tensor) -> Any:
    """As a tensor of the leaf's kind: the leaf itself where nothing changed, else one that shares nothing with it."""
    if result is resizing.tensor:
        return _without_gradient(leaf)
    return result.to(device=leaf.device, dtype=leaf.dtype, copy=True, memory_format=torch.contiguous_format)


# ---- which dims bound the values of an integer leaf: found by asking the model


def learn_value_ranges(example: Example, runs: Callable[[Mapping[str, Any]], bool]) -> dict[str, ValueRange]:
    """The value ranges that the model shows by refusing values; `runs` tells whether it accepts a full set of leaves.

    For the size of each dim, a value at it and just beyond is tried: an index stops below the size, a length at it.
    """
    integers = [name for name, leaf in example.leaves.items() if isinstance(leaf, Tensor) and _holds_integers(leaf)]
    return {name: found for name in integers if (found := _value_range_of(example, name, runs)) is not None}


def _holds_integers(leaf: Tensor) -> bool:
    return _wide_dtype(leaf.dtype) == torch.int64 and bool(leaf.numel())


def _value_range_of(example: Example, name: str, runs: Callable[[Mapping[str, Any]], bool]) -> ValueRange | None:
    leaf: Tensor = example.leaves[name]
    highest = int(leaf.to(torch.int64).max())
    sizes = sorted({s for s in example.sizes.values() if highest <= s < torch.iinfo(leaf.dtype).max})

    def accepts(value: int) -> bool:
        return value <= highest or runs({**example.leaves, name: _with_highest(leaf, value)})

    if not sizes or accepts(sizes[-1] + 1):
        return None  # whatever bounds the values is larger than every dim
    for size in sizes:
        kind = _stops_at(size, accepts)
        dims = [
            d for d, s in example.sizes.items() if s == size and kind and _bound_follows(example, name, d, kind, runs)
        ]
        if kind and dims:
            return ValueRange(kind, tuple(dims))
    return None


def _stops_at(size: int, accepts: Callable[[int], bool]) -> Literal["index", "length"] | None:
    if accepts(size + 1):
        return None
    if accepts(size):
        return "length"
    return "index" if accepts(size - 1) else None


def _bound_follows(
    example: Example, name: str, dim: str, kind: Literal["index", "length"], runs: Callable[[Mapping[str, Any]], bool]
) -> bool:
    """Whether the bound moves with the dim; else it is a constant, a small vocabulary say, that equals its size.

    Where the dim can neither grow by one nor double, it is taken to.
    """
    for size in (example.sizes[dim] + 1, 2 * example.sizes[dim]):
        sizes = {**example.sizes, dim: size}
        grown = resize(example, sizes, ranges={}, level=1)
        highest = ValueRange(kind, (dim,)).highest(sizes)
        if runs({**grown, name: _with_highest(grown[name], highest)}):
            return True
        if runs(grown):
            return False
    return True


def _with_highest(leaf: Tensor, value: int) -> Tensor:
    """A copy in which the highest element has this value."""
    changed = leaf.detach().clone(memory_format=torch.contiguous_format)
    if changed.numel():
        changed.view(-1)[int(leaf.to(torch.int64).argmax())] = value
    return changed
