"""`genai_config.json`: what ONNX Runtime GenAI wants to know about a decoder with a cache."""

from __future__ import annotations

from typing import Any

from anyshape.checkpoints.decoders import context_length
from anyshape.checkpoints.parts import ModelPart, first_set

_TYPES = (
    "ernie4_5", "gemma", "gemma2", "gemma3_text", "granite", "internlm2", "llama", "mistral", "nemotron", "olmo", "phi",
    "phi3", "qwen2", "qwen3", "smollm3",
)  # fmt: skip
"""The types that GenAI knows and runs as one decoder with keys and values; any other decoder is just a `decoder`."""


def genai_config(model: Any, config: Any, part: ModelPart, file: str) -> dict[str, Any] | None:
    """The settings, or None where layers differ in their heads: GenAI gives all of them one shape."""
    text = config.get_text_config(decoder=True)
    past = part.make_call(**part.example)["past_key_values"]
    shapes = {(pair[name].shape[1], pair[name].shape[3]) for pair in past for name in ("key", "value")}
    if len(shapes) != 1:
        return None
    [(heads, size)] = shapes
    tokens = getattr(model, "generation_config", None) or text
    end = first_set(tokens, "eos_token_id")
    ends = [] if end is None else list(end) if isinstance(end, (list, tuple)) else [end]
    length = context_length(text) or 2048
    ports = {name: name for name in ("input_ids", "attention_mask", "position_ids") if name in part.dims}
    model_settings = {
        "bos_token_id": _token(tokens, text, "bos_token_id", ends),
        "context_length": length,
        "decoder": {
            "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
            "filename": file,
            "head_size": size,
            "hidden_size": text.hidden_size,
            "inputs": {
                **ports,
                "past_key_names": "past_key_values.%d.key",
                "past_value_names": "past_key_values.%d.value",
            },
            "outputs": {
                "logits": "logits",
                "present_key_names": "present.%d.key",
                "present_value_names": "present.%d.value",
            },
            "num_attention_heads": text.num_attention_heads,
            "num_hidden_layers": len(past),
            "num_key_value_heads": heads,
        },
        "eos_token_id": ends,
        "pad_token_id": _token(tokens, text, "pad_token_id", ends),
        "type": text.model_type if text.model_type in _TYPES else "decoder",
        "vocab_size": text.vocab_size,
    }
    return {"model": model_settings, "search": {"max_length": length, **_SEARCH}}


_SEARCH = {
    "do_sample": False,
    "num_beams": 1,
    "past_present_share_buffer": False,
    "temperature": 1.0,
    "top_k": 1,
    "top_p": 1.0,
}
"""Greedy, as the file was checked; a past grows with every token, so it shares no buffer with what comes back."""


def _token(tokens: Any, config: Any, name: str, ends: list[int]) -> int:
    """A token that a config leaves open is the first that ends a text, as transformers takes it."""
    found = first_set(tokens, name)
    found = first_set(config, name) if found is None else found
    return int(found if found is not None else (ends or [0])[0])
