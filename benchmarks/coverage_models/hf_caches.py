"""transformers on text with a cache of keys and values whose past may be empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from coverage_models.entry import Entry, own, ragged, under
from coverage_models.hf_common import SEQ2SEQ, TEXT, tiny
from coverage_models.hf_text import DECODERS, EXPERTS, T5

HEAD = 8
"""Channels of one head in all of these."""

CACHED = {
    "gpt2": 4, "gpt_neo": 4, "gptj": 4, "gpt_neox": 4, "opt": 4, "llama": 2, "mistral": 2, "qwen2": 2, "qwen3": 2,
    "gemma": 1, "gemma2": 2, "phi": 4, "phi3": 2, "stablelm": 2, "starcoder2": 2, "olmo2": 2, "cohere": 2, "granite": 2,
    "smollm3": 2, "mixtral": 2, "gpt_oss": 2, "biogpt": 4, "bloom": 4,
}  # fmt: skip
"""Heads of keys and values."""


def cache(batch: int, heads: int, past: int, layers: int = 2) -> Any:
    from transformers import DynamicCache

    made = DynamicCache()
    for layer in range(layers):
        made.update(torch.randn(batch, heads, past, HEAD), torch.randn(batch, heads, past, HEAD), layer)
    return made


def _step(heads: int) -> Callable[..., dict[str, Any]]:
    def make(batch: int, seq: int, past: int) -> dict[str, Any]:
        return {
            "input_ids": torch.randint(3, 100, (batch, seq)),
            "attention_mask": ragged(batch, past + seq).long(),
            "past_key_values": cache(batch, heads, past),
        }

    return make


DIMS = {"input_ids": "batch seq", "attention_mask": "batch past+seq"}


def decoders() -> list[Entry]:
    found = []
    for name, kind, options in DECODERS + EXPERTS:
        if name not in CACHED:
            continue
        heads = CACHED[name]
        built = tiny(kind, **{**TEXT, **options})
        dims = {**DIMS, "past_key_values": f"batch {heads} past {HEAD}"}
        found.append(own(f"{name} with past", built, _step(heads), dims, sizes={"past": "0.."}, own_inputs=False))
    return found


def _bart_step(batch: int, source: int, past: int) -> dict[str, Any]:
    from transformers import EncoderDecoderCache

    both = EncoderDecoderCache(cache(batch, 4, past), cache(batch, 4, source))
    return {
        "attention_mask": ragged(batch, source).long(),
        "decoder_input_ids": torch.randint(3, 100, (batch, 1)),
        "encoder_outputs": (torch.randn(batch, source, 32),),
        "past_key_values": both,
    }


def translators() -> list[Entry]:
    dims = {
        "attention_mask": "batch source", "decoder_input_ids": "batch 1", "encoder_outputs.0": "batch source 32",
        "past_key_values.self_attention_cache": f"batch 4 past {HEAD}",
        "past_key_values.cross_attention_cache": f"batch 4 source {HEAD}",
    }  # fmt: skip
    bart = tiny("BartForConditionalGeneration", **{**SEQ2SEQ, "use_cache": True})
    t5 = tiny("T5ForConditionalGeneration", **{**T5, "use_cache": True})
    return [
        own("bart with past", bart, _bart_step, dims, own_inputs=False, past=(4, 1, 7, 2)),
        own("t5 with past", t5, _bart_step, dims, own_inputs=False, past=(4, 1, 7, 2)),
    ]


def entries() -> list[Entry]:
    return under("hf", [*decoders(), *translators()])
