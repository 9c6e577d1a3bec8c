"""Tiny models of transformers with random weights, saved as anybody would save theirs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

WORDS = 40
TEXT: dict[str, Any] = {
    "vocab_size": WORDS, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
    "max_position_embeddings": 64,
}  # fmt: skip
TOKENS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
VISION: dict[str, Any] = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
LLAMA: dict[str, Any] = {**TEXT, **TOKENS, "num_hidden_layers": 2, "num_key_value_heads": 2}


def llama() -> Any:
    return _made("LlamaForCausalLM", transformers.LlamaConfig(**LLAMA))


def windowed() -> Any:
    """A window far smaller than what is generated."""
    config = transformers.MistralConfig(**{**LLAMA, "num_hidden_layers": 1}, sliding_window=4)
    return _made("MistralForCausalLM", config)


def gpt2() -> Any:
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32}
    return _made("GPT2LMHeadModel", transformers.GPT2Config(vocab_size=WORDS, **sizes, bos_token_id=1, eos_token_id=2))


def bert() -> Any:
    return _made("BertModel", transformers.BertConfig(**TEXT))


def roberta() -> Any:
    config = transformers.RobertaConfig(**TEXT, type_vocab_size=1, num_labels=3)
    return _made("RobertaForSequenceClassification", config)


def vit() -> Any:
    return _made("ViTForImageClassification", transformers.ViTConfig(**VISION, num_labels=5))


def resnet() -> Any:
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8], depths=[1], layer_type="basic")
    return _made("ResNetModel", config)


def clip() -> Any:
    text = {**TEXT, "bos_token_id": WORDS - 2, "eos_token_id": WORDS - 1, "projection_dim": 16}
    config = transformers.CLIPConfig(
        text_config=text, vision_config={**VISION, "projection_dim": 16}, projection_dim=16
    )
    return _made("CLIPModel", config)


HALVES: dict[str, Any] = {
    "vocab_size": WORDS, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, **TOKENS, "decoder_start_token_id": 3,
}  # fmt: skip


def bart() -> Any:
    return _made("BartForConditionalGeneration", transformers.BartConfig(**HALVES, max_position_embeddings=64))


def t5() -> Any:
    sizes = {"d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 1, "num_heads": 4}
    return _made(
        "T5ForConditionalGeneration", transformers.T5Config(vocab_size=WORDS, **sizes, decoder_start_token_id=0)
    )


def whisper() -> Any:
    sizes = {"max_source_positions": 16, "max_target_positions": 32, "num_mel_bins": 8}
    config = transformers.WhisperConfig(**HALVES, **sizes)
    return _made("WhisperForConditionalGeneration", config)


def mamba() -> Any:
    config = transformers.MambaConfig(vocab_size=WORDS, hidden_size=16, state_size=4, num_hidden_layers=1, **TOKENS)
    return _made("MambaForCausalLM", config)


def _made(kind: str, config: Any) -> Any:
    """Weights far from how they are initialised, since flat attention hides what is wrong."""
    torch.manual_seed(0)
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.3 + (parameter.dim() == 1))
    return model


def saved(make: Callable[[], Any], folder: Path, **options: Any) -> Path:
    make().save_pretrained(folder, **options)
    return folder
