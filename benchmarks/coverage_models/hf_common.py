"""Tiny models of transformers from their configurations, with weights that matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
SCALE = 5.0
"""Freshly made weights are so small that a wrong layer would hardly show."""

TEXT: dict[str, Any] = {
    "vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
SEQ2SEQ: dict[str, Any] = {
    "vocab_size": 100, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "use_cache": False,
}  # fmt: skip


def tiny(kind: str, **options: Any) -> Callable[[], nn.Module]:
    """A builder of one architecture: its class and what its configuration says; `...` leaves a usual option out."""

    def build() -> nn.Module:
        import transformers

        made = getattr(transformers, kind)
        return lively(made(made.config_class(**{key: value for key, value in options.items() if value is not ...})))

    return build


def lively(model: nn.Module) -> nn.Module:
    """Small weights scaled up, neutral scales and shifts moved, statistics that are not 0 and 1."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1 and parameter.numel() > 1 and parameter.std() < 0.1:
                parameter.mul_(SCALE)
            elif parameter.ndim == 1 and bool((parameter == parameter[:1]).all()):
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
        for module in model.modules():
            if isinstance(module, NORMS) and module.running_mean is not None:
                module.running_mean.add_(0.1 * torch.randn(module.running_mean.shape, generator=generator))
    return model.eval()


def step_with_cache(model: nn.Module, tokens: torch.Tensor, mask: torch.Tensor, *cached: torch.Tensor) -> Any:
    """The logits of a decoder's step, and its new cache; of the old one, keys and values of every layer in turn."""
    from transformers import DynamicCache

    cache = DynamicCache()
    for layer, (key, value) in enumerate(zip(cached[::2], cached[1::2], strict=True)):
        cache.update(key, value, layer)
    found = model(tokens, attention_mask=mask, past_key_values=cache, use_cache=True)
    kept = [tensor for layer in found.past_key_values.layers for tensor in (layer.keys, layer.values)]
    return (found.logits, *kept)
