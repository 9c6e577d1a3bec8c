"""Caches of transformers made from the tensors of a call, and taken apart again.

Nothing in them asks whether a past is empty: the length of a past is the size of an axis, so that one graph serves the
first step and every later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import transformers.cache_utils

# as values of any type: their annotations change from release to release
DynamicLayer: Any = transformers.cache_utils.DynamicLayer
DynamicCache: Any = transformers.cache_utils.DynamicCache
EncoderDecoderCache: Any = transformers.cache_utils.EncoderDecoderCache

Pair = dict[str, torch.Tensor]
"""The `key` and the `value` of one layer."""


class GivenLayer(DynamicLayer):  # type: ignore[misc]
    """A layer that starts with a past of any length, zero included."""

    def __init__(self, past: Pair) -> None:
        super().__init__()
        self.keys, self.values = past["key"], past["value"]
        self.dtype, self.device = self.keys.dtype, self.keys.device
        self.is_initialized = True

    def get_seq_length(self) -> int:
        length: int = self.keys.shape[-2]
        return length

    def as_pair(self) -> Pair:
        return {"key": self.keys, "value": self.values}


class CrossLayer(GivenLayer):
    """A layer for the encoder's states: what comes to it has one row too many in front, see `project_the_rest`."""

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        keys, values = _without_first(key_states, 1, axis=2), _without_first(value_states, 1, axis=2)
        return super().update(keys, values, *args, **kwargs)


def given_cache(past: Sequence[Pair], kind: type[GivenLayer] = GivenLayer) -> Any:
    cache = DynamicCache()
    cache.layers = [kind(pair) for pair in past]
    return cache


class ResumedCache(EncoderDecoderCache):  # type: ignore[misc]
    """The caches of a decoder with an encoder, where any part of what belongs to the encoder may be there already."""

    def __init__(self, past: Sequence[dict[str, Pair]]) -> None:
        # not that of the base class, which asks whether a past is empty and keeps the answer for good
        self.self_attention_cache = given_cache([layer["decoder"] for layer in past])
        self.cross_attention_cache = given_cache([layer["encoder"] for layer in past], CrossLayer)
        self.is_updated: dict[int, bool] = {}

    def as_pairs(self) -> list[dict[str, Pair]]:
        both = zip(self.self_attention_cache.layers, self.cross_attention_cache.layers, strict=True)
        return [{"decoder": own.as_pair(), "encoder": cross.as_pair()} for own, cross in both]


def project_the_rest(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A hook before cross attention: keys and values that the past holds already are not computed again.

    With an empty past all of the encoder's states are projected, with a whole one none are, and no branch is needed.
    One row goes in front, to be cut off afterwards: models reshape in ways that PyTorch refuses for nothing at all.
    """
    states, cache = kwargs.get("key_value_states"), kwargs.get("past_key_values")
    if states is None or not isinstance(cache, ResumedCache):
        return None
    known = cache.cross_attention_cache.layers[module.layer_idx].get_seq_length()
    rest = _without_first(states, known, axis=1)
    return args, {**kwargs, "key_value_states": torch.cat([states[:, :1], rest], dim=1)}


def _without_first(tensor: torch.Tensor, count: int, *, axis: int) -> torch.Tensor:
    """All but the first rows. Unlike a slice, a split says how many these are, whatever a trace knows of the sizes."""
    sizes = [count, tensor.shape[axis] - count]
    return torch.split_with_sizes(tensor, sizes, axis)[1]
