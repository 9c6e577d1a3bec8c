"""Decoders of transformers in one file for both steps: prefill(n) and one more token give what prefill(n + 1) gives.

The file runs alone here, without the model: from an empty past, and with rows of different lengths padded on the left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers
from torch import nn
from transformers import DynamicCache

import anyshape

LAYERS, HEADS, SIZE, WORDS = 2, 2, 8, 40
SMALL: dict[str, Any] = {
    "vocab_size": WORDS, "hidden_size": HEADS * SIZE, "intermediate_size": 32, "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", SMALL),
    "gpt2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {"vocab_size": WORDS, "n_embd": HEADS * SIZE, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64},
    ),
    "mistral with a window": ("MistralConfig", "MistralForCausalLM", {**SMALL, "sliding_window": 4}),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM", {**SMALL, "num_local_experts": 4, "num_experts_per_tok": 2}),
}
SLOW = {"gpt2", "mistral with a window", "mixtral"}


def _model(family: str) -> nn.Module:
    config, kind, options = FAMILIES[family]
    torch.manual_seed(0)
    model: nn.Module = getattr(transformers, kind)(getattr(transformers, config)(**options)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(5)  # as initialised attention is flat, and hides what is wrong
    return model


def _inputs(batch: int, seq: int, past: int) -> dict[str, Any]:
    cache = DynamicCache()
    for layer in range(LAYERS):
        cache.update(*(torch.randn(batch, HEADS, past, SIZE) for _ in range(2)), layer)
    mask = torch.ones(batch, past + seq, dtype=torch.int64)
    places = torch.arange(past, past + seq).repeat(batch, 1)
    ids = torch.randint(1, WORDS, (batch, seq))
    return {"input_ids": ids, "attention_mask": mask, "position_ids": places, "past_key_values": cache}


DIMS = {
    "input_ids": "batch seq",
    "attention_mask": "batch past+seq",
    "position_ids": "batch seq",
    "past_key_values": f"batch {HEADS} past {SIZE}",
}


class Decoder:
    """The file as a server would run it."""

    def __init__(self, path: Path) -> None:
        self._session = onnxruntime.InferenceSession(path)
        names = [value.name for value in self._session.get_inputs()]
        self._caches = [name for name in names if name.startswith("past_key_values")]

    def empty(self, batch: int) -> list[Any]:
        return [np.zeros((batch, HEADS, 0, SIZE), dtype=np.float32) for _ in self._caches]

    def run(self, ids: Any, mask: Any, past: list[Any]) -> tuple[Any, list[Any]]:
        """The last token's logits, and the cache as it is then."""
        places = np.maximum(mask.cumsum(1) - 1, 0)[:, -ids.shape[1] :]
        call = {"input_ids": ids, "attention_mask": mask, "position_ids": places}
        logits, *cache = self._session.run(None, {**call, **dict(zip(self._caches, past, strict=True))})
        return logits[:, -1], cache


@pytest.fixture(scope="module", params=[pytest.param(f, marks=pytest.mark.slow if f in SLOW else ()) for f in FAMILIES])
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    path = tmp_path_factory.mktemp("decoder") / "model.onnx"
    result = anyshape.export(_model(request.param), f=path, make_inputs=_inputs, dims=DIMS, quick=True)
    assert result.verdict == "checked"
    return Decoder(path)


def _masks(batch: int, length: int, *, padded: bool) -> Any:
    mask = np.ones((batch, length), dtype=np.int64)
    if padded:
        for row in range(1, batch):
            mask[row, : min(row, length - 1)] = 0  # one more on the left of each row
    return mask


@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded on the left"])
@pytest.mark.parametrize(("batch", "length"), [(1, 1), (3, 4), (2, 9)])
def test_one_more_token_gives_what_the_longer_prompt_gives(
    decoder: Decoder, batch: int, length: int, padded: bool
) -> None:
    ids = np.random.default_rng(0).integers(1, WORDS, (batch, length + 1))
    mask = _masks(batch, length + 1, padded=padded)
    whole, _ = decoder.run(ids, mask, decoder.empty(batch))
    _, cache = decoder.run(ids[:, :-1], mask[:, :-1], decoder.empty(batch))
    step, _ = decoder.run(ids[:, -1:], mask, cache)
    assert np.abs(whole).max() > 0.1
    np.testing.assert_allclose(step, whole, atol=1e-4 * np.abs(whole).max())


def test_all_tokens_may_come_one_by_one(decoder: Decoder) -> None:
    ids = np.random.default_rng(1).integers(1, WORDS, (2, 6))
    mask = _masks(2, 6, padded=True)
    whole, _ = decoder.run(ids, mask, decoder.empty(2))
    _, cache = decoder.run(ids[:, :2], mask[:, :2], decoder.empty(2))
    for place in range(2, 6):
        step, cache = decoder.run(ids[:, place : place + 1], mask[:, : place + 1], cache)
    np.testing.assert_allclose(step, whole, atol=1e-4 * np.abs(whole).max())
