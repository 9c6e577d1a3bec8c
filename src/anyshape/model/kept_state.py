"""What a module holds that has a length: what it keeps from call to call, and the tables that it was made with.

A module that was warmed up reads what it kept, and a trace at that size would hold it as a constant. Traced where the
module builds anew, the file builds at every size. Whether that is the same where the module reads what it kept is for
the check, which has to run those sizes. Where a table ends, so may the sizes that the module takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from anyshape.model.oracle import Reference
from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange, Sizes


def building_sizes(
    reference: Reference,
    start: Sizes,
    ranges: Mapping[str, SizeRange],
    admit: Callable[[Sizes], Sizes | None],
    lengths: Sequence[int],
) -> Sizes:
    """`start`, or near it sizes at which the module builds something that it does not build there."""
    spent = 0.0
    best, most = start, reference.changes(reference.run(start))
    for proposed in itertools.islice(_other_sizes(start, ranges, lengths), budgets.MOST_SIZES_FOR_KEPT_STATE):
        sizes = admit(proposed)
        if sizes is None:
            continue
        spent += reference.effort(sizes).work
        if spent > budgets.WORK_FOR_KEPT_STATE:
            break
        if (outcome := reference.run(sizes)).runs:
            changes = reference.changes(outcome)
            if changes > most:
                best, most = sizes, changes
    return best


def _other_sizes(start: Sizes, ranges: Mapping[str, SizeRange], lengths: Sequence[int]) -> Iterator[Sizes]:
    """All dims larger, then one dim beyond each length that the module holds, the smallest first."""
    proposed = [{d: size + (i + 1) * ranges[d].step for i, (d, size) in enumerate(start.items())}]
    proposed.append({dim: 2 * size + 1 + i for i, (dim, size) in enumerate(start.items())})
    for length in lengths:
        proposed += [{**start, d: length + ranges[d].step} for d, size in start.items() if length >= size]
    seen = {tuple(start.values())}
    for wished in proposed:
        sizes = {dim: ranges[dim].nearest(size) for dim, size in wished.items()}
        if tuple(sizes.values()) not in seen:
            seen.add(tuple(sizes.values()))
            yield sizes


def kept_sizes(sizes: Sizes, ranges: Mapping[str, SizeRange], lengths: Sequence[int]) -> Sequence[Sizes]:
    """Sizes at which the module may read what it kept: one dim as long as something that it holds."""
    near = [{**sizes, dim: length} for length in lengths for dim in sizes if length in ranges[dim]]
    return near[: budgets.MOST_SIZES_FOR_KEPT_STATE]


# ---- lengths of what is kept


def kept_lengths(module: nn.Module) -> tuple[int, ...]:
    """Lengths of tables and masks that the user's own modules hold beside their parameters, and keys of dicts."""
    found: set[int] = set()
    for part in module.modules():
        if not type(part).__module__.startswith("torch."):
            found.update(_lengths_within({k: v for k, v in vars(part).items() if k not in _OF_TORCH}, depth=0))
    return tuple(sorted(length for length in found if 1 < length < budgets.LARGEST_SIZE_OF_KEPT_STATE))


_OF_TORCH = set(vars(nn.Module())) - {"_buffers"}


def _lengths_within(value: Any, *, depth: int) -> Iterator[int]:
    if depth > budgets.DEEPEST_KEPT_STATE or isinstance(value, (nn.Module, nn.Parameter)):
        return
    if isinstance(value, torch.Tensor):
        yield from value.shape
    elif isinstance(value, dict):
        for key, inner in itertools.islice(value.items(), budgets.MOST_ENTRIES_OF_KEPT_STATE):
            keys = key if isinstance(key, tuple) else (key,)
            yield from (number for number in keys if isinstance(number, int))
            yield from _lengths_within(inner, depth=depth + 1)
    elif isinstance(value, (list, tuple, set)):
        for inner in itertools.islice(value, budgets.MOST_ENTRIES_OF_KEPT_STATE):
            yield from _lengths_within(inner, depth=depth + 1)
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, type):
        yield from _lengths_within(vars(value), depth=depth + 1)


# ---- lengths of tables


_OWNERS_OF_FEATURES = (nn.Linear, nn.Bilinear, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.RNNBase)
_OF_FEATURES = ("weight", "bias", "running_")
"""How the names of tensors begin that have a number for each feature or channel."""


def table_lengths(module: nn.Module, *, least_axes: int = 1) -> list[int]:
    """Lengths of what may be indexed or cut by position: embeddings, buffers, parameters other than those of layers.

    `least_axes` leaves out those with fewer axes: many of them are features, too.
    """
    found: set[int] = set()
    for part in module.modules():
        left_out = _OF_FEATURES if _holds_features(part) else ()
        own = (*part.named_parameters(recurse=False), *part.named_buffers(recurse=False))
        tables = [tensor for name, tensor in own if not name.startswith(left_out) and tensor.dim() >= least_axes]
        found |= {length for tensor in tables for length in tensor.shape if length > 1}
        if isinstance(part, nn.Embedding | nn.EmbeddingBag):
            found.add(part.num_embeddings)
    return sorted(found)


def _holds_features(part: nn.Module) -> bool:
    """Layers with a weight for each feature or channel, of torch or of others that are built like them."""
    return (
        isinstance(part, (*_OWNERS_OF_FEATURES, nn.Embedding, nn.EmbeddingBag))
        or hasattr(part, "kernel_size")
        or all(hasattr(part, name) for name in ("num_features", "running_mean"))
    )
