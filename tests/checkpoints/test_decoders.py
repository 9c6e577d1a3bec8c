"""What a model keeps between two tokens, what of it can be passed on, and files that do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache
from transformers.cache_utils import LinearAttentionLayer

import anyshape
from anyshape import DeclarationError
from anyshape.checkpoints import export_checkpoint
from anyshape.checkpoints.decoders import (
    ResumedCache,
    context_length,
    given_cache,
    kept_layers,
    pair_like,
    project_the_rest,
)
from anyshape.checkpoints.export_parts import Exported
from tests.checkpoints import tiny
from tests.checkpoints.files import axes_of

Make = Callable[[str], Any]


class Model:
    pass


def _refusal(cache: Any) -> str:
    with pytest.raises(DeclarationError) as refusal:
        kept_layers(Model(), cache)
    return str(refusal.value)


def test_keys_and_values_may_differ_in_size() -> None:
    cache = DynamicCache()
    cache.update(torch.zeros(1, 3, 2, 8), torch.zeros(1, 3, 2, 4), 0)
    [layer] = kept_layers(Model(), cache)
    pair = pair_like(layer, 2, 0, torch.float16)
    assert [tuple(pair[name].shape) for name in ("key", "value")] == [(2, 3, 0, 8), (2, 3, 0, 4)]
    assert pair["value"].dtype == torch.float16


def test_a_state_that_does_not_grow_is_refused() -> None:
    cache = DynamicCache()
    cache.layers = [LinearAttentionLayer()]
    assert _refusal(cache) == (
        "`Model` keeps a `LinearAttentionLayer`, but only keys and values of attention can be passed on: "
        'task="text-generation" exports it without a cache'
    )


def test_no_cache_at_all_is_refused() -> None:
    assert _refusal(None) == (
        "`Model` returns no `past_key_values`, so its state cannot be passed on: "
        'task="text-generation" exports it without a cache'
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


# ---- files


def test_a_decoder_serves_the_prompt_and_every_later_token(exported: Make) -> None:
    found: Exported = exported("llama")
    [result] = found
    new, total = "batch_size, sequence_length", "past_sequence_length + sequence_length"
    past = [f"past_key_values.{layer}.{part}" for layer in range(2) for part in ("key", "value")]
    assert axes_of(result.inputs) == {
        "input_ids": new,
        "attention_mask": f"batch_size, {total}",
        "position_ids": new,
        **dict.fromkeys(past, "batch_size, 2, past_sequence_length, 4"),
    }
    present = [name.replace("past_key_values", "present") for name in past]
    shape = f"batch_size, 2, {total}, 4"
    assert axes_of(result.outputs) == {"logits": f"{new}, {tiny.WORDS}", **dict.fromkeys(present, shape)}
    assert str(result.dims["past_sequence_length"]) == "0.."
    assert any(sizes["past_sequence_length"] == 0 for sizes in result.verification.sizes_run)
    assert found.generation == (
        "a prompt of 5 and one more token as the prompt of 6",
        "8 tokens of 2 prompts as `generate` of transformers",
    )


def test_a_decoder_is_called_as_its_contract_says(exported: Make) -> None:
    decoder = anyshape.load(exported("llama").path / "model.onnx")
    ids = torch.ones(1, 60, dtype=torch.int64)
    past = [dict.fromkeys(("key", "value"), torch.zeros(1, 2, 5, 4))] * 2
    with pytest.raises(DeclarationError) as refusal:
        decoder(input_ids=ids, attention_mask=torch.ones(1, 65).long(), position_ids=ids, past_key_values=past)
    assert str(refusal.value) == (
        "the file takes `past_sequence_length + sequence_length <= 64`, "
        "but `past_sequence_length` = 5 and `sequence_length` = 60"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "windowed"])
def test_other_decoders_generate_as_transformers_does(name: str, exported: Make) -> None:
    assert exported(name).generation[1] == "8 tokens of 2 prompts as `generate` of transformers"


@pytest.mark.slow
def test_a_decoder_without_its_cache_is_a_task(checkpoint: Make, tmp_path: Path) -> None:
    found = export_checkpoint(checkpoint("gpt2"), tmp_path / "out", task="text-generation", quick=True)
    assert list(axes_of(found[0].inputs)) == ["input_ids", "attention_mask"]
    assert (list(axes_of(found[0].outputs)), found.generation) == (["logits"], ())
    assert "genai_config.json" not in found.files


def test_a_state_that_is_no_cache_is_refused(checkpoint: Make, tmp_path: Path) -> None:
    with pytest.raises(DeclarationError) as refusal:
        export_checkpoint(checkpoint("mamba"), tmp_path / "out")
    assert str(refusal.value) == (
        "`MambaForCausalLM` returns no `past_key_values`, so its state cannot be passed on: "
        'task="text-generation" exports it without a cache'
    )
    assert not (tmp_path / "out").exists()
