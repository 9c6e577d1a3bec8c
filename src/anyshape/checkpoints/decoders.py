"""Decoders with a cache: caches of transformers made from the tensors of a call, and models that are called with them.

Nothing in these caches asks whether a past is empty: the length of a past is the size of an axis, so that one graph
serves the prompt and every later token. Models that keep something else than keys and values are refused by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
import transformers.cache_utils
from torch import nn

from anyshape.checkpoints.parts import Keywords, ModelPart, first_set, floats, mask_padded_left, positions_of, token_ids
from anyshape.errors import DeclarationError, named_line
from anyshape.sizes.spelling import spelled

# as values of any type: their annotations change from release to release
DynamicLayer: Any = transformers.cache_utils.DynamicLayer
DynamicCache: Any = transformers.cache_utils.DynamicCache
DynamicSlidingWindowLayer: Any = transformers.cache_utils.DynamicSlidingWindowLayer
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


# ---- causal language models


PAST = "past_sequence_length"
TOTAL = f"{PAST} + sequence_length"


class Decoder(nn.Module):
    """A causal language model with its cache as plain tensors."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor | None = None,
        past_key_values: Sequence[Pair] = (),
    ) -> dict[str, Any]:
        cache = given_cache(past_key_values)
        places = {} if position_ids is None else {"position_ids": position_ids}
        result = self.model(
            input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True, **places
        )
        return {"logits": result.logits, "present": [layer.as_pair() for layer in cache.layers]}


def pair_like(layer: Any, rows: int, length: int, dtype: torch.dtype) -> Pair:
    """Keys and values of any length, otherwise as large as those that a model itself keeps in a layer."""
    kept = {"key": layer.keys.shape, "value": layer.values.shape}
    return {name: floats(rows, shape[1], length, shape[3], dtype=dtype) for name, shape in kept.items()}


def decoder_part(model: Any, config: Any) -> ModelPart:
    """`model.onnx` of a causal language model; a model that keeps something else than keys and values is refused."""
    text = config.get_text_config(decoder=True)
    layers = kept_layers(model, cache_after_prompt(model, text))
    takes_places = "position_ids" in inspect.signature(model.forward).parameters
    dtype, vocabulary = model.dtype, text.vocab_size

    def make_call(batch_size: int, sequence_length: int, past_sequence_length: int) -> Keywords:
        mask = mask_padded_left(batch_size, past_sequence_length + sequence_length)
        call: Keywords = {"input_ids": token_ids(batch_size, sequence_length, vocabulary), "attention_mask": mask}
        if takes_places:
            call["position_ids"] = positions_of(mask, sequence_length)
        call["past_key_values"] = [pair_like(layer, batch_size, past_sequence_length, dtype) for layer in layers]
        return call

    dims = {
        "input_ids": "batch_size sequence_length",
        "attention_mask": ["batch_size", TOTAL],
        **({"position_ids": "batch_size sequence_length"} if takes_places else {}),
        "past_key_values": f"batch_size _ {PAST} _",
    }
    example, limit = {"batch_size": 2, "sequence_length": 3, PAST: 4}, context_length(text)
    where = (f"{TOTAL} <= {limit}",) if limit else ()
    return ModelPart("model", Decoder(model), make_call, dims, example, {PAST: "0.."}, where)


# ---- what the model itself tells


def context_length(config: Any) -> int | None:
    """How many places the model knows, where its config says so."""
    names = ("max_target_positions", "max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    found = first_set(config, *names)
    return int(found) if found and found > 0 else None


def cache_after_prompt(model: Any, config: Any) -> Any:
    """What the model itself keeps after a prompt."""
    # two tokens, so that a length and a batch of one are told apart; not 0, which is often padding
    prompt = torch.zeros(1, 2, dtype=torch.int64) + min(1, config.vocab_size - 1)
    try:
        with torch.no_grad():
            result = model(input_ids=prompt, attention_mask=torch.ones_like(prompt), use_cache=True)
    except Exception as error:
        raise DeclarationError(f"`{type(model).__name__}` does not run on two tokens: {named_line(error)}") from error
    return getattr(result, "past_key_values", None)


def kept_layers(model: Any, cache: Any) -> list[Any]:
    """The cache's layers, or one sentence about what is kept beside keys and values of all tokens."""
    said = spelled('task="text-generation"', "--task text-generation")
    name, without = type(model).__name__, f"{said} exports it without a cache"
    if cache is None:
        raise DeclarationError(f"`{name}` returns no `past_key_values`, so its state cannot be passed on: {without}")
    layers = list(getattr(cache, "layers", ()))
    other = next((layer for layer in layers if type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer)), None)
    if other is not None or not layers:
        kept = type(other if other is not None else cache).__name__
        raise DeclarationError(
            f"`{name}` keeps a `{kept}`, but only keys and values of attention can be passed on: {without}"
        )
    if any(layer.keys is None or layer.keys.dim() != 4 for layer in layers):
        raise DeclarationError(f"not every layer of `{name}` keeps keys and values of four axes: {without}")
    return layers
