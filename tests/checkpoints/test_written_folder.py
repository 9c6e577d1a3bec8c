from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from anyshape import DeclarationError
from anyshape.checkpoints import export_checkpoint
from anyshape.checkpoints.folders import Folder
from anyshape.checkpoints.written_folder import companions, layout_for

Make = Callable[[str], Any]


def test_files_stand_where_their_readers_look() -> None:
    assert layout_for("optimum", torch.bfloat16).file("model") == "model.onnx"
    assert layout_for("transformers.js", torch.float32).file("decoder_model_merged") == "onnx/decoder_model_merged.onnx"
    assert layout_for("transformers.js", torch.float16).file("model") == "onnx/model_fp16.onnx"


def test_what_no_layout_has_is_refused() -> None:
    with pytest.raises(DeclarationError) as refusal:
        layout_for("transformers-js", torch.float32)
    assert str(refusal.value) == (
        "no layout is called `transformers-js`; did you mean `transformers.js`?: optimum or transformers.js"
    )
    with pytest.raises(DeclarationError) as refusal:
        layout_for("transformers.js", torch.bfloat16)
    assert str(refusal.value) == "transformers.js has no name for files in bfloat16: float32 or float16"


def test_small_files_of_an_adapter_come_before_those_of_its_model(tmp_path: Path) -> None:
    for name in ("base", "adapter"):
        (tmp_path / name).mkdir()
    tokenizers = ["base/tokenizer.json", "base/merges.txt", "adapter/tokenizer.json"]
    others = ["base/model.safetensors.index.json", "adapter/adapter_config.json", "adapter/adapter_model.safetensors"]
    for name in ("base/config.json", *tokenizers, *others):
        (tmp_path / name).touch()
    found = companions(Folder(tmp_path / "base", {}, tmp_path / "adapter"))
    assert {path.relative_to(tmp_path).as_posix() for path in found.values()} == {
        "base/config.json", "base/merges.txt", "adapter/tokenizer.json",
    }  # fmt: skip


def test_transformers_js_finds_model_and_weights(checkpoint: Make, exported: Make, tmp_path: Path) -> None:
    found = export_checkpoint(
        checkpoint("vit"), tmp_path / "out", layout="transformers.js", external_data=True, quick=True
    )
    assert found.files == ("config.json", "onnx/model.onnx", "onnx/model.onnx_data")
    settings = json.loads((tmp_path / "out/config.json").read_text())
    assert settings["transformers.js_config"] == {"use_external_data_format": {"model.onnx": 1}}
    pixels = {"pixel_values": np.random.default_rng(0).normal(size=(2, 3, 32, 32)).astype(np.float32)}
    moved = onnxruntime.InferenceSession(found[0].path).run(None, pixels)[0]
    whole = onnxruntime.InferenceSession(exported("vit").path / "model.onnx").run(None, pixels)[0]
    np.testing.assert_allclose(moved, whole, atol=1e-5)
