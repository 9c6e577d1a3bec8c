"""What a model keeps between two tokens, and what of it can be passed on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache
from transformers.cache_utils import LinearAttentionLayer

from anyshape import DeclarationError
from anyshape.checkpoints.decoders import (
    LayerShape,
    ResumedCache,
    context_length,
    given_cache,
    layer_shapes,
    project_the_rest,
)
from anyshape.checkpoints.export_parts import every_mask_applied
from tests.checkpoints import tiny


class Model:
    pass


def _refusal(cache: Any) -> str:
    with pytest.raises(DeclarationError) as refusal:
        layer_shapes(Model(), cache)
    return str(refusal.value)


def test_keys_and_values_may_differ_in_size() -> None:
    cache = DynamicCache()
    cache.update(torch.zeros(1, 3, 2, 8), torch.zeros(1, 3, 2, 4), 0)
    assert layer_shapes(Model(), cache) == [LayerShape(3, 8, 4)]
    assert LayerShape(3, 8, 4).pair(2, 0, torch.float16)["value"].shape == (2, 3, 0, 4)


def test_a_state_that_does_not_grow_is_refused() -> None:
    cache = DynamicCache()
    cache.layers = [LinearAttentionLayer()]
    assert _refusal(cache) == (
        "`Model` keeps a `LinearAttentionLayer`, but only keys and values of attention can be passed on: "
        "--task text-generation exports it without a cache"
    )


def test_no_cache_at_all_is_refused() -> None:
    assert _refusal(None) == (
        "`Model` returns no `past_key_values`, so its state cannot be passed on: "
        "--task text-generation exports it without a cache"
    )


def test_the_context_ends_where_the_config_says() -> None:
    assert context_length(SimpleNamespace(max_position_embeddings=64)) == 64
    assert context_length(SimpleNamespace(max_target_positions=32, max_source_positions=16)) == 32
    assert context_length(SimpleNamespace(max_position_embeddings=None)) is None


def test_a_given_past_grows_and_may_be_empty() -> None:
    cache = given_cache([{"key": torch.zeros(2, 1, 0, 4), "value": torch.zeros(2, 1, 0, 4)}])
    assert cache.get_seq_length() == 0
    cache.update(torch.ones(2, 1, 3, 4), torch.ones(2, 1, 3, 4), 0)
    assert (cache.get_seq_length(), cache.layers[0].as_pair()["key"].shape) == (3, (2, 1, 3, 4))


def test_what_a_past_holds_of_the_encoder_is_not_projected_again() -> None:
    class Attention(torch.nn.Module):
        layer_idx = 0

        def forward(self, key_value_states: Any = None, past_key_values: Any = None) -> Any:
            return key_value_states

    attention = Attention()
    attention.register_forward_pre_hook(project_the_rest, with_kwargs=True)
    states = torch.arange(5.0).reshape(1, 5, 1)
    for known in (0, 2, 5):
        pair = dict.fromkeys(("key", "value"), torch.zeros(1, 1, known, 1))
        cache = ResumedCache([{"decoder": pair, "encoder": pair}])
        given = attention(key_value_states=states, past_key_values=cache)
        assert given.flatten().tolist() == [0, *range(known, 5)]
        cache.cross_attention_cache.update(given[:, None], given[:, None], 0)
        assert cache.as_pairs()[0]["encoder"]["key"][0, 0, known:, 0].tolist() == list(range(known, 5))


def test_masks_are_applied_for_the_time_of_an_export_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    masks: list[Any] = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def watching(*args: Any, attn_mask: Any = None, **kwargs: Any) -> Any:
        masks.append(attn_mask)
        return attend(*args, attn_mask=attn_mask, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watching)
    model, ids = tiny.windowed(), torch.ones(2, 3, dtype=torch.int64)
    with torch.no_grad():
        wanted = model(ids).logits
        with every_mask_applied():
            torch.testing.assert_close(model(ids).logits, wanted)
        model(ids)
    assert [mask is None for mask in masks] == [True, False, True]
