"""Models without a cache: names and dims as optimum's users expect them, values as transformers gives them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from anyshape import DeclarationError
from anyshape.checkpoints import export_checkpoint
from tests.checkpoints import tiny
from tests.checkpoints.files import assert_agrees, axes_of, run_file

Make = Callable[[str], Any]


def test_a_text_encoder_has_the_names_and_limits_of_its_kind(exported: Make) -> None:
    [result] = exported("bert")
    tokens = "batch_size, sequence_length"
    assert axes_of(result.inputs) == {"input_ids": tokens, "attention_mask": tokens, "token_type_ids": tokens}
    assert axes_of(result.outputs) == {"last_hidden_state": f"{tokens}, 16", "pooler_output": "batch_size, 16"}
    assert (result.path.name, result.limits) == ("model.onnx", ("sequence_length <= 64",))


def test_a_text_encoder_gives_what_transformers_gives(exported: Make, checkpoint: Make) -> None:
    model = transformers.AutoModel.from_pretrained(checkpoint("bert")).eval()
    ids = torch.randint(0, tiny.WORDS, (3, 41))
    call = {"input_ids": ids, "attention_mask": (torch.arange(41) < torch.tensor([[41], [20], [3]])).long()}
    call["token_type_ids"] = torch.randint(0, 2, ids.shape)
    with torch.no_grad():
        wanted = model(**call)
    found = run_file(exported("bert").path / "model.onnx", call)
    assert_agrees(found["pooler_output"], wanted.pooler_output)
    assert_agrees(found["last_hidden_state"], wanted.last_hidden_state)


@pytest.mark.slow
def test_a_model_with_one_token_type_takes_none(exported: Make) -> None:
    [result] = exported("roberta")
    assert list(axes_of(result.inputs)) == ["input_ids", "attention_mask"]
    assert axes_of(result.outputs) == {"logits": "batch_size, 3"}
    assert result.limits == ("sequence_length <= 62",)


@pytest.mark.slow
def test_the_tokenizer_decides_on_token_types(checkpoint: Make, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint("bert"), tmp_path / "bert")
    (folder / "tokenizer_config.json").write_text('{"model_input_names": ["input_ids", "attention_mask"]}')
    [result] = export_checkpoint(folder, tmp_path / "out", quick=True)
    assert list(axes_of(result.inputs)) == ["input_ids", "attention_mask"]


def test_an_image_that_the_model_takes_in_one_size_is_fixed(exported: Make) -> None:
    found = exported("vit")
    assert axes_of(found[0].inputs) == {"pixel_values": "batch_size, 3, 32, 32"}
    assert axes_of(found[0].outputs) == {"logits": "batch_size, 5"}
    assert found.notes == ("`pixel_values` is fixed at 3 x 32 x 32: the model takes no other size",)


def test_an_image_that_may_have_any_size_has_its_dims(exported: Make, checkpoint: Make) -> None:
    [result] = exported("resnet")
    assert axes_of(result.inputs) == {"pixel_values": "batch_size, 3, height, width"}
    model = transformers.AutoModel.from_pretrained(checkpoint("resnet")).eval()
    pixels = torch.randn(2, 3, 45, 71)
    with torch.no_grad():
        assert_agrees(
            run_file(result.path, {"pixel_values": pixels})["last_hidden_state"], model(pixels).last_hidden_state
        )


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
    assert axes_of(result.inputs) == {
        "input_ids": "text_batch_size, sequence_length",
        "pixel_values": "image_batch_size, 3, 32, 32",
        "attention_mask": "text_batch_size, sequence_length",
    }
    assert set(axes_of(result.outputs)) == {"logits_per_image", "logits_per_text", "text_embeds", "image_embeds"}
    model = transformers.AutoModel.from_pretrained(checkpoint("clip")).eval()
    ids = torch.randint(0, tiny.WORDS, (4, 9))
    call = {"input_ids": ids, "pixel_values": torch.randn(3, 3, 32, 32), "attention_mask": torch.ones_like(ids)}
    with torch.no_grad():
        assert_agrees(run_file(result.path, call)["logits_per_image"], model(**call).logits_per_image)
