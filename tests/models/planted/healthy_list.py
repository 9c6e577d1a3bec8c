"""Healthy models with all that may vary, at sizes that are also constants of the models and at sizes that are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tests.models.planted import healthy

Sizes = dict[str, int]


@dataclass(frozen=True)
class Healthy:
    """A model, its inputs at any size, and the sizes of its examples."""

    name: str
    build: Callable[[], nn.Module]
    make: Callable[..., dict[str, Any]]
    dims: dict[str, str]
    alike: Sizes
    """Sizes that are also heads, widths, kernels or layers."""
    apart: Sizes
    sizes: Any = None
    """What a user declares besides."""


def tiny(kind: str, **options: Any) -> Callable[[], nn.Module]:
    """A model of transformers from its configuration."""

    def build() -> nn.Module:
        import transformers

        made = getattr(transformers, kind)
        return made(made.config_class(**options))

    return build


TEXT: dict[str, Any] = {
    "vocab_size": 100, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24,
    "max_position_embeddings": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
WIDE: dict[str, Any] = {
    "vocab_size": 100, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 40,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "use_cache": False,
}  # fmt: skip
T5: dict[str, Any] = {
    "vocab_size": 100, "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 1, "num_heads": 4, "use_cache": False,
    "relative_attention_num_buckets": 8, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
VIT: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24, "image_size": 16,
    "patch_size": 4,
}  # fmt: skip
SOUND: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 24, "conv_dim": [8, 8],
    "conv_stride": [5, 4], "conv_kernel": [10, 8], "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 4, "vocab_size": 20,
}  # fmt: skip


def mask(batch: int, seq: int) -> torch.Tensor:
    ends = torch.tensor([max(seq - row % 2, 1) for row in range(batch)])
    return (torch.arange(seq) < ends[:, None]).long()


def words(batch: int, seq: int) -> dict[str, Any]:
    return {"input_ids": torch.randint(3, 100, (batch, seq)), "attention_mask": mask(batch, seq)}


def pair(batch: int, source: int, target: int) -> dict[str, Any]:
    return {**words(batch, source), "decoder_input_ids": torch.randint(3, 100, (batch, target))}


def step(batch: int, seq: int, past: int) -> dict[str, Any]:
    from transformers import DynamicCache

    cache = DynamicCache()
    for layer in range(2):
        cache.update(torch.randn(batch, 2, past, 4), torch.randn(batch, 2, past, 4), layer)
    ids = torch.randint(3, 100, (batch, seq))
    return {"input_ids": ids, "attention_mask": mask(batch, past + seq), "past_key_values": cache}


WORDS = {"input_ids": "batch seq", "attention_mask": "batch seq"}
PAIR = {"input_ids": "batch source", "attention_mask": "batch source", "decoder_input_ids": "batch target"}
STEP = {"input_ids": "batch seq", "attention_mask": "batch past+seq", "past_key_values": "batch 2 past 4"}
LLAMA = {**TEXT, "num_key_value_heads": 2}


def text(name: str, kind: str, alike: Sizes, **options: Any) -> Healthy:
    return Healthy(name, tiny(kind, **{**TEXT, **options}), words, WORDS, alike, {"batch": 3, "seq": 7})


def picture(batch: int, height: int, width: int) -> dict[str, Any]:
    return {"pixel_values": torch.randn(batch, 3, height, width), "interpolate_pos_encoding": True}


TRANSFORMERS = [
    text("bert", "BertModel", {"batch": 4, "seq": 16}),
    text("distilbert", "DistilBertModel", {"batch": 2, "seq": 4}, dim=16, n_layers=1, n_heads=4, hidden_dim=24),
    text("roberta", "RobertaModel", {"batch": 3, "seq": 8}),
    text("albert", "AlbertModel", {"batch": 4, "seq": 4}, embedding_size=8),
    text("mpnet", "MPNetModel", {"batch": 8, "seq": 24}),
    text("gpt2", "GPT2LMHeadModel", {"batch": 4, "seq": 16}, use_cache=False),
    text("llama", "LlamaForCausalLM", {"batch": 2, "seq": 4}, num_key_value_heads=2, use_cache=False),
    Healthy("llama with a cache", tiny("LlamaForCausalLM", **LLAMA), step, STEP,
            {"batch": 2, "seq": 4, "past": 4}, {"batch": 3, "seq": 5, "past": 7}),
    Healthy("bart", tiny("BartForConditionalGeneration", **WIDE), pair, PAIR,
            {"batch": 4, "source": 16, "target": 4}, {"batch": 3, "source": 7, "target": 5}),
    Healthy("t5", tiny("T5ForConditionalGeneration", **T5), pair, PAIR,
            {"batch": 4, "source": 8, "target": 8}, {"batch": 3, "source": 7, "target": 5}),
    Healthy("vit", tiny("ViTModel", **VIT), picture, {"pixel_values": "batch 3 height width"},
            {"batch": 4, "height": 16, "width": 16}, {"batch": 2, "height": 20, "width": 28},
            {"height": "8.. step 4", "width": "8.. step 4"}),
    Healthy("wav2vec2", tiny("Wav2Vec2Model", **SOUND),
            lambda batch, length: {"input_values": torch.randn(batch, length)}, {"input_values": "batch length"},
            {"batch": 4, "length": 400}, {"batch": 3, "length": 777}, {"length": "200.."}),
]  # fmt: skip


def ids(batch: int, seq: int) -> dict[str, Any]:
    return {"ids": torch.randint(0, 20, (batch, seq))}


def masked(batch: int, seq: int) -> dict[str, Any]:
    return {**ids(batch, seq), "mask": mask(batch, seq)}


def translated(batch: int, source: int, target: int) -> dict[str, Any]:
    known = masked(batch, source)
    return {"source": known["ids"], "mask": known["mask"], "target": torch.randint(0, 20, (batch, target))}


def image(batch: int, height: int, width: int) -> dict[str, Any]:
    return {"image": torch.randn(batch, 3, height, width)}


def graph(nodes: int, edges: int) -> dict[str, Any]:
    return {"x": torch.randn(nodes, 4), "edges": torch.randint(0, nodes, (2, edges))}


def pointed(batch: int, seq: int, queries: int) -> dict[str, Any]:
    return {"x": torch.randn(batch, seq, 4), "queries": torch.randn(batch, queries, 4)}


MASKED = {"ids": "batch seq", "mask": "batch seq"}
IMAGE = {"image": "batch 3 height width"}

COMPOSED = [
    Healthy("convolution, LSTM and attention", healthy.ConvTagger, masked, MASKED,
            {"batch": 2, "seq": 8}, {"batch": 5, "seq": 7}),
    Healthy("encoder-decoder", healthy.Translator, translated,
            {"source": "batch source", "mask": "batch source", "target": "batch target"},
            {"batch": 2, "source": 8, "target": 8}, {"batch": 3, "source": 7, "target": 5}),
    Healthy("U-Net", healthy.unet, image, IMAGE,
            {"batch": 4, "height": 16, "width": 16}, {"batch": 2, "height": 21, "width": 30}),
    Healthy("TCN", healthy.Tcn, lambda batch, length: {"x": torch.randn(batch, 4, length)}, {"x": "batch 4 length"},
            {"batch": 4, "length": 4}, {"batch": 2, "length": 9}),
    Healthy("graph network", healthy.Graph, graph, {"x": "nodes 4", "edges": "2 edges"},
            {"nodes": 4, "edges": 8}, {"nodes": 7, "edges": 11}),
    Healthy("detector", healthy.Detector, image, IMAGE,
            {"batch": 2, "height": 16, "width": 24}, {"batch": 5, "height": 21, "width": 30}),
    Healthy("encoder with padding", healthy.PaddedEncoder, masked, MASKED,
            {"batch": 2, "seq": 8}, {"batch": 3, "seq": 7}),
    Healthy("pointer", healthy.Pointer, pointed, {"x": "batch seq 4", "queries": "batch queries 4"},
            {"batch": 4, "seq": 8, "queries": 8}, {"batch": 3, "seq": 7, "queries": 5}),
    Healthy("patches", healthy.Patches, image, IMAGE,
            {"batch": 8, "height": 16, "width": 8}, {"batch": 2, "height": 20, "width": 28},
            {"height": "4..32 step 4", "width": "4..32 step 4"}),
    Healthy("frames", healthy.Frames, lambda batch, samples: {"wave": torch.randn(batch, samples)},
            {"wave": "batch samples"}, {"batch": 4, "samples": 36}, {"batch": 3, "samples": 61}, {"samples": "12.."}),
    Healthy("constants", healthy.Constants, lambda batch, seq: {"x": torch.randn(batch, seq, 8)}, {"x": "batch seq 8"},
            {"batch": 2, "seq": 8}, {"batch": 3, "seq": 7}),
    Healthy("tagger", healthy.tagger, ids, {"ids": "batch seq"}, {"batch": 2, "seq": 8}, {"batch": 3, "seq": 7}),
]  # fmt: skip

HEALTHY = [*TRANSFORMERS, *COMPOSED]
