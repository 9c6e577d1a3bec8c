"""Decoders with a cache: one file that serves the prompt and every later token."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from anyshape.checkpoints import parts_inputs
from anyshape.checkpoints.decoders_caches import Pair, given_cache
from anyshape.checkpoints.parts import Call, Part
from anyshape.errors import DeclarationError, first_line

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


@dataclass(frozen=True)
class LayerShape:
    """How large the cache of one layer is beside its length."""

    heads: int
    key_size: int
    value_size: int

    @classmethod
    def of(cls, layer: Any) -> LayerShape:
        return cls(layer.keys.shape[1], layer.keys.shape[3], layer.values.shape[3])

    def pair(self, rows: int, length: int, dtype: torch.dtype) -> Pair:
        return {
            "key": parts_inputs.floats(rows, self.heads, length, self.key_size, dtype=dtype),
            "value": parts_inputs.floats(rows, self.heads, length, self.value_size, dtype=dtype),
        }


def decoder_part(model: Any, config: Any) -> Part:
    """`model.onnx` of a causal language model; a model that keeps something else than keys and values is refused."""
    text = config.get_text_config(decoder=True)
    layers = layer_shapes(model, ask_for_cache(model, text))
    takes_places = "position_ids" in inspect.signature(model.forward).parameters
    dtype, vocabulary = model.dtype, text.vocab_size

    def make_call(batch_size: int, sequence_length: int, past_sequence_length: int) -> Call:
        mask = parts_inputs.mask_padded_left(batch_size, past_sequence_length + sequence_length)
        call: Call = {
            "input_ids": parts_inputs.token_ids(batch_size, sequence_length, vocabulary),
            "attention_mask": mask,
        }
        if takes_places:
            call["position_ids"] = parts_inputs.positions_of(mask, sequence_length)
        call["past_key_values"] = [layer.pair(batch_size, past_sequence_length, dtype) for layer in layers]
        return call

    dims = {
        "input_ids": "batch_size sequence_length",
        "attention_mask": ["batch_size", TOTAL],
        **({"position_ids": "batch_size sequence_length"} if takes_places else {}),
        "past_key_values": f"batch_size _ {PAST} _",
    }
    limit = context_length(text)
    return Part(
        "model",
        Decoder(model),
        make_call,
        dims,
        {"batch_size": 2, "sequence_length": 3, PAST: 4},
        {PAST: "0.."},
        (f"{TOTAL} <= {limit}",) if limit else (),
    )


def context_length(config: Any) -> int | None:
    """How many places the model knows, where its config says so."""
    names = ("max_target_positions", "max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    found = parts_inputs.first_set(config, *names)
    return int(found) if found and found > 0 else None


def ask_for_cache(model: Any, config: Any) -> Any:
    """What the model itself keeps after a prompt."""
    prompt = torch.zeros(1, 2, dtype=torch.int64) + min(1, config.vocab_size - 1)
    try:
        with torch.no_grad():
            result = model(input_ids=prompt, attention_mask=torch.ones_like(prompt), use_cache=True)
    except Exception as error:
        said = f"{type(error).__name__}: {first_line(error)}"
        raise DeclarationError(f"`{type(model).__name__}` does not run on two tokens: {said}") from error
    return getattr(result, "past_key_values", None)


def layer_shapes(model: Any, cache: Any) -> list[LayerShape]:
    """The cache's layers, or one sentence about what is kept beside keys and values of all tokens."""
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    name, without = type(model).__name__, "--task text-generation exports it without a cache"
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
    return [LayerShape.of(layer) for layer in layers]
