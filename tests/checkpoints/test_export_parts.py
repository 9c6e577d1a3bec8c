"""Whole checkpoints: names and dims as optimum's users expect them, values as transformers gives them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers

import anyshape
from anyshape import DeclarationError, ExportError
from anyshape.checkpoints import export_checkpoint
from anyshape.checkpoints.exported import Exported
from anyshape.results.result import Result
from tests.checkpoints import tiny

Make = Callable[[str], Any]


def _ports(ports: Any) -> dict[str, str]:
    return {port.name: ", ".join(map(str, port.axes)) for port in ports}


def _run(path: Path, feeds: dict[str, torch.Tensor]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {name: value.numpy() for name, value in feeds.items()}), strict=True))


def _agrees(found: Any, wanted: torch.Tensor) -> None:
    largest = float(wanted.abs().max())
    assert largest > 0.1
    np.testing.assert_allclose(found, wanted.numpy(), atol=1e-4 * largest)


# ---- encoders


def test_a_text_encoder_has_the_names_and_limits_of_its_kind(exported: Make) -> None:
    [result] = exported("bert")
    tokens = "batch_size, sequence_length"
    assert _ports(result.inputs) == {"input_ids": tokens, "attention_mask": tokens, "token_type_ids": tokens}
    assert _ports(result.outputs) == {"last_hidden_state": f"{tokens}, 16", "pooler_output": "batch_size, 16"}
    assert (result.path.name, result.limits) == ("model.onnx", ("sequence_length <= 64",))


def test_a_text_encoder_gives_what_transformers_gives(exported: Make, checkpoint: Make) -> None:
    model = transformers.AutoModel.from_pretrained(checkpoint("bert")).eval()
    ids = torch.randint(0, tiny.WORDS, (3, 41))
    call = {"input_ids": ids, "attention_mask": (torch.arange(41) < torch.tensor([[41], [20], [3]])).long()}
    call["token_type_ids"] = torch.randint(0, 2, ids.shape)
    with torch.no_grad():
        wanted = model(**call)
    found = _run(exported("bert").path / "model.onnx", call)
    _agrees(found["pooler_output"], wanted.pooler_output)
    _agrees(found["last_hidden_state"], wanted.last_hidden_state)


@pytest.mark.slow
def test_a_model_with_one_token_type_takes_none(exported: Make) -> None:
    [result] = exported("roberta")
    assert list(_ports(result.inputs)) == ["input_ids", "attention_mask"]
    assert _ports(result.outputs) == {"logits": "batch_size, 3"}
    assert result.limits == ("sequence_length <= 62",)


@pytest.mark.slow
def test_the_tokenizer_decides_on_token_types(checkpoint: Make, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint("bert"), tmp_path / "bert")
    (folder / "tokenizer_config.json").write_text('{"model_input_names": ["input_ids", "attention_mask"]}')
    [result] = export_checkpoint(folder, tmp_path / "out", quick=True)
    assert list(_ports(result.inputs)) == ["input_ids", "attention_mask"]


def test_an_image_that_the_model_takes_in_one_size_is_fixed(exported: Make) -> None:
    found = exported("vit")
    assert _ports(found[0].inputs) == {"pixel_values": "batch_size, 3, 32, 32"}
    assert _ports(found[0].outputs) == {"logits": "batch_size, 5"}
    assert found.notes == ("`pixel_values` is fixed at 3 x 32 x 32: the model takes no other size",)


def test_an_image_that_may_have_any_size_has_its_dims(exported: Make, checkpoint: Make) -> None:
    [result] = exported("resnet")
    assert _ports(result.inputs) == {"pixel_values": "batch_size, 3, height, width"}
    model = transformers.AutoModel.from_pretrained(checkpoint("resnet")).eval()
    pixels = torch.randn(2, 3, 45, 71)
    with torch.no_grad():
        _agrees(_run(result.path, {"pixel_values": pixels})["last_hidden_state"], model(pixels).last_hidden_state)


@pytest.mark.slow
def test_sizes_narrow_dims_by_name(checkpoint: Make, tmp_path: Path) -> None:
    [result] = export_checkpoint(checkpoint("resnet"), tmp_path / "out", sizes={"height": "32..64"}, quick=True)
    assert str(result.dims["height"]) == "32..64"
    with pytest.raises(DeclarationError) as refusal:
        export_checkpoint(checkpoint("resnet"), tmp_path / "out", sizes={"hight": 32})
    assert str(refusal.value) == (
        "no dim is called `hight`; did you mean `height`?: the model has `batch_size`, `height`, `width`"
    )


@pytest.mark.slow
def test_texts_and_images_need_not_be_equally_many(exported: Make, checkpoint: Make) -> None:
    [result] = exported("clip")
    assert _ports(result.inputs) == {
        "input_ids": "text_batch_size, sequence_length",
        "pixel_values": "image_batch_size, 3, 32, 32",
        "attention_mask": "text_batch_size, sequence_length",
    }
    assert set(_ports(result.outputs)) == {"logits_per_image", "logits_per_text", "text_embeds", "image_embeds"}
    model = transformers.AutoModel.from_pretrained(checkpoint("clip")).eval()
    ids = torch.randint(0, tiny.WORDS, (4, 9))
    call = {"input_ids": ids, "pixel_values": torch.randn(3, 3, 32, 32), "attention_mask": torch.ones_like(ids)}
    with torch.no_grad():
        _agrees(_run(result.path, call)["logits_per_image"], model(**call).logits_per_image)


# ---- decoders


def test_a_decoder_serves_the_prompt_and_every_later_token(exported: Make) -> None:
    found: Exported = exported("llama")
    [result] = found
    new, total = "batch_size, sequence_length", "past_sequence_length + sequence_length"
    past = [f"past_key_values.{layer}.{part}" for layer in range(2) for part in ("key", "value")]
    assert _ports(result.inputs) == {
        "input_ids": new,
        "attention_mask": f"batch_size, {total}",
        "position_ids": new,
        **dict.fromkeys(past, "batch_size, 2, past_sequence_length, 4"),
    }
    present = [name.replace("past_key_values", "present") for name in past]
    shape = f"batch_size, 2, {total}, 4"
    assert _ports(result.outputs) == {"logits": f"{new}, {tiny.WORDS}", **dict.fromkeys(present, shape)}
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
    assert list(_ports(found[0].inputs)) == ["input_ids", "attention_mask"]
    assert (list(_ports(found[0].outputs)), found.generation) == (["logits"], ())
    assert "genai_config.json" not in found.files


def test_a_state_that_is_no_cache_is_refused(checkpoint: Make, tmp_path: Path) -> None:
    with pytest.raises(DeclarationError) as refusal:
        export_checkpoint(checkpoint("mamba"), tmp_path / "out")
    assert str(refusal.value) == (
        "`MambaForCausalLM` returns no `past_key_values`, so its state cannot be passed on: "
        "--task text-generation exports it without a cache"
    )
    assert not (tmp_path / "out").exists()


# ---- encoders with decoders


def test_an_encoder_and_its_decoder_are_two_files(exported: Make) -> None:
    encoder, decoder = exported("bart")
    assert (encoder.path.name, decoder.path.name) == ("encoder_model.onnx", "decoder_model_merged.onnx")
    source = "batch_size, encoder_sequence_length"
    assert _ports(encoder.inputs) == {"input_ids": source, "attention_mask": source}
    assert _ports(encoder.outputs) == {"last_hidden_state": f"{source}, 16"}
    own, cross = "batch_size, 4, past_decoder_sequence_length, 4", "batch_size, 4, past_encoder_sequence_length, 4"
    assert _ports(decoder.inputs) == {
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
    assert _ports(decoder.outputs) == {
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
    states = _run(folder / "encoder_model.onnx", {"input_ids": source, "attention_mask": mask})["last_hidden_state"]
    decoder = anyshape.load(folder / "decoder_model_merged.onnx")
    call = {"encoder_hidden_states": torch.from_numpy(states), "encoder_attention_mask": mask}
    nothing = dict.fromkeys(("key", "value"), torch.zeros(2, 4, 0, 4))
    first = decoder(input_ids=target[:, :5], **call, past_key_values=[{"decoder": nothing, "encoder": nothing}])
    _agrees(first["logits"], wanted[:, :5])
    _agrees(decoder(input_ids=target[:, 5:], **call, past_key_values=first["present"])["logits"], wanted[:, 5:])


@pytest.mark.slow
def test_a_decoder_with_relative_places_generates_as_transformers_does(exported: Make) -> None:
    assert exported("t5").generation[1] == "8 tokens of 2 prompts as `generate` of transformers"


@pytest.mark.slow
def test_speech_is_encoded_at_its_fixed_length(exported: Make) -> None:
    encoder, decoder = exported("whisper")
    assert _ports(encoder.inputs) == {"input_features": "batch_size, 8, 32"}
    assert "encoder_attention_mask" not in _ports(decoder.inputs)
    assert exported("whisper").generation[1] == "8 tokens of 2 prompts as `generate` of transformers"


# ---- files


def test_config_and_tokenizer_stand_beside_the_model(checkpoint: Make, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint("vit"), tmp_path / "vit")
    for name in ("preprocessor_config.json", "tokenizer.json", "spiece.model"):
        (folder / name).write_text("{}")
    for name in ("README.md", "modeling.py", "flax_model.msgpack"):
        (folder / name).write_text("")
    found = export_checkpoint(folder, tmp_path / "out", quick=True)
    assert found.files == ("config.json", "model.onnx", "preprocessor_config.json", "spiece.model", "tokenizer.json")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == list(found.files)


@pytest.mark.parametrize("parts", [{"max_shard_size": "5KB"}, {"max_shard_size": "5KB", "safe_serialization": False}])
def test_weights_in_parts_are_read(parts: dict[str, Any], exported: Make, tmp_path: Path) -> None:
    try:
        folder = tiny.saved(tiny.vit, tmp_path / "vit", **parts)
    except TypeError:
        pytest.skip("this transformers saves safetensors alone")
    assert len(list(folder.glob("*-of-*"))) > 1
    found = export_checkpoint(folder, tmp_path / "out", quick=True)
    pixels = {"pixel_values": torch.randn(2, 3, 32, 32)}
    whole = _run(exported("vit").path / "model.onnx", pixels)["logits"]
    np.testing.assert_array_equal(_run(found[0].path, pixels)["logits"], whole)


def test_weights_in_half_precision_are_written_as_asked(checkpoint: Make, tmp_path: Path) -> None:
    [result] = export_checkpoint(checkpoint("vit"), tmp_path / "half", dtype="float16", quick=True)
    assert (result.inputs[0].dtype, result.outputs[0].dtype) == ("float16", "float16")
    model = tiny.vit().to(torch.bfloat16)
    model.save_pretrained(tmp_path / "stored")
    found = export_checkpoint(tmp_path / "stored", tmp_path / "out", quick=True)
    assert found[0].inputs[0].dtype == "float32"
    assert found.notes[0] == ("the weights are stored in bfloat16 and written in float32: --dtype bfloat16 keeps them")


def test_a_refused_export_leaves_the_folder_as_it_was(
    checkpoint: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Result:
        raise ExportError(Result("refused"))

    monkeypatch.setattr("anyshape.checkpoints.export_parts.export", refuse)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/model.onnx").write_text("mine")
    with pytest.raises(ExportError) as refusal:
        export_checkpoint(checkpoint("vit"), tmp_path / "out")
    assert refusal.value.result.notes == ("this is about model.onnx; the folder is as it was",)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "model.onnx"]
    assert (tmp_path / "out/model.onnx").read_text() == "mine"


def test_what_was_done_is_told_as_text_and_as_values(exported: Make) -> None:
    found = exported("bart")
    lines = str(found).splitlines()
    assert lines[0] == "checked: bart/, BartForConditionalGeneration in 2 model files"
    assert lines[1].startswith("  checked: encoder_model.onnx, right at ")
    assert lines[-3:-1] == [f"  decoded  {fact}" for fact in found.generation]
    assert lines[-1] == "  beside   config.json, generation_config.json"
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["verdict"], told["model"]) == ("checked", "BartForConditionalGeneration")
    assert [Path(result["path"]).name for result in told["results"]] == [result.path.name for result in found]
