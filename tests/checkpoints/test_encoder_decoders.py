"""Two files of one model: the decoder goes on from an empty past of the encoder, or from a whole one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers

import anyshape
from tests.checkpoints import tiny
from tests.checkpoints.files import assert_agrees, axes_of, run_file

Make = Callable[[str], Any]


def test_an_encoder_and_its_decoder_are_two_files(exported: Make) -> None:
    encoder, decoder = exported("bart")
    assert (encoder.path.name, decoder.path.name) == ("encoder_model.onnx", "decoder_model_merged.onnx")
    source = "batch_size, encoder_sequence_length"
    assert axes_of(encoder.inputs) == {"input_ids": source, "attention_mask": source}
    assert axes_of(encoder.outputs) == {"last_hidden_state": f"{source}, 16"}
    own, cross = "batch_size, 4, past_decoder_sequence_length, 4", "batch_size, 4, past_encoder_sequence_length, 4"
    assert axes_of(decoder.inputs) == {
        "input_ids": "batch_size, decoder_sequence_length",
        "encoder_attention_mask": source,
        "encoder_hidden_states": f"{source}, 16",
        "past_key_values.0.decoder.key": own,
        "past_key_values.0.decoder.value": own,
        "past_key_values.0.encoder.key": cross,
        "past_key_values.0.encoder.value": cross,
    }
    grown = "batch_size, 4, decoder_sequence_length + past_decoder_sequence_length, 4"
    whole = "batch_size, 4, encoder_sequence_length, 4"
    assert axes_of(decoder.outputs) == {
        "logits": f"batch_size, decoder_sequence_length, {tiny.WORDS}",
        "present.0.decoder.key": grown,
        "present.0.decoder.value": grown,
        "present.0.encoder.key": whole,
        "present.0.encoder.value": whole,
    }
    assert exported("bart").generation[1] == "8 tokens of 2 prompts as `generate` of transformers"


def test_a_decoder_takes_an_empty_past_of_the_encoder_or_the_whole(exported: Make, checkpoint: Make) -> None:
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(checkpoint("bart")).eval()
    source, target = torch.randint(1, tiny.WORDS, (2, 11)), torch.randint(1, tiny.WORDS, (2, 6))
    mask = (torch.arange(11) < torch.tensor([[11], [7]])).long()
    with torch.no_grad():
        wanted = model(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
    folder = exported("bart").path
    states = run_file(folder / "encoder_model.onnx", {"input_ids": source, "attention_mask": mask})["last_hidden_state"]
    decoder = anyshape.load(folder / "decoder_model_merged.onnx")
    call = {"encoder_hidden_states": torch.from_numpy(states), "encoder_attention_mask": mask}
    nothing = dict.fromkeys(("key", "value"), torch.zeros(2, 4, 0, 4))
    first = decoder(input_ids=target[:, :5], **call, past_key_values=[{"decoder": nothing, "encoder": nothing}])
    assert_agrees(first["logits"], wanted[:, :5])
    assert_agrees(decoder(input_ids=target[:, 5:], **call, past_key_values=first["present"])["logits"], wanted[:, 5:])


@pytest.mark.slow
def test_a_decoder_with_relative_places_generates_as_transformers_does(exported: Make) -> None:
    assert exported("t5").generation[1] == "8 tokens of 2 prompts as `generate` of transformers"


@pytest.mark.slow
def test_speech_is_encoded_at_its_fixed_length(exported: Make) -> None:
    encoder, decoder = exported("whisper")
    assert axes_of(encoder.inputs) == {"input_features": "batch_size, 8, 32"}
    assert "encoder_attention_mask" not in axes_of(decoder.inputs)
    assert exported("whisper").generation[1] == "8 tokens of 2 prompts as `generate` of transformers"
