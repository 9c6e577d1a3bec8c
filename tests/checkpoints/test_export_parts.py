"""Whole checkpoints: what stands beside the models, precisions, refusals, masks, and what is told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from anyshape import ExportError
from anyshape.checkpoints import export_checkpoint
from anyshape.checkpoints.export_parts import every_mask_applied
from anyshape.results.result import Result
from tests.checkpoints import tiny
from tests.checkpoints.files import run_file

Make = Callable[[str], Any]


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
    whole = run_file(exported("vit").path / "model.onnx", pixels)["logits"]
    np.testing.assert_array_equal(run_file(found[0].path, pixels)["logits"], whole)


def test_weights_in_half_precision_are_written_as_asked(checkpoint: Make, tmp_path: Path) -> None:
    [result] = export_checkpoint(checkpoint("vit"), tmp_path / "half", dtype="float16", quick=True)
    assert (result.inputs[0].dtype, result.outputs[0].dtype) == ("float16", "float16")
    model = tiny.vit().to(torch.bfloat16)
    model.save_pretrained(tmp_path / "stored")
    found = export_checkpoint(tmp_path / "stored", tmp_path / "out", quick=True)
    assert found[0].inputs[0].dtype == "float32"
    assert found.notes[0] == 'the weights are stored in bfloat16 and written in float32: dtype="bfloat16" keeps them'


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


# ---- what is told


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
