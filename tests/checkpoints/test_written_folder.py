"""Names of files, what stands beside the models, GenAI's settings, and folders written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers

from anyshape import DeclarationError
from anyshape.checkpoints import export_checkpoint
from anyshape.checkpoints.folders import Folder
from anyshape.checkpoints.written_folder import check_folder, companions, layout_for

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


# ---- where it goes


def test_places_that_cannot_be_written_to_get_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "checkpoint"
    source.mkdir()
    (tmp_path / "file").touch()

    def refusal(out: Path) -> str:
        with pytest.raises(DeclarationError) as refused:
            check_folder(out, source)
        return str(refused.value).replace(str(tmp_path), "/home")

    assert refusal(tmp_path / "file") == "`/home/file` is a file: a checkpoint is exported to a folder"
    assert refusal(source) == "`/home/checkpoint` is the checkpoint itself: name another folder"
    assert refusal(tmp_path / "file/out") == "`/home/file` is a file, so that there can be no folder `/home/file/out`"
    assert check_folder(tmp_path / "no/where", source) == tmp_path / "no/where"
    monkeypatch.chdir(tmp_path)
    assert refusal(Path()) == "`.` is the current folder, or around it: name another one, or one in it"


# ---- ONNX Runtime GenAI


def test_genai_is_told_what_the_file_has(exported: Make) -> None:
    settings = json.loads((exported("llama").path / "genai_config.json").read_text())
    model, decoder = settings["model"], settings["model"]["decoder"]
    assert {key: model[key] for key in ("type", "vocab_size", "context_length", "bos_token_id", "eos_token_id")} == {
        "type": "llama", "vocab_size": 40, "context_length": 64, "bos_token_id": 1, "eos_token_id": [2],
    }  # fmt: skip
    shapes = ("head_size", "hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers")
    assert {key: decoder[key] for key in shapes} == dict(zip(shapes, (4, 16, 4, 2, 2), strict=True))
    [result] = exported("llama")
    names = {port.name for port in (*result.inputs, *result.outputs)}
    told = [*decoder["inputs"].values(), *decoder["outputs"].values()]
    assert {name.replace("%d", str(layer)) for name in told for layer in range(2)} == names
    assert not settings["search"]["past_present_share_buffer"]


def test_genai_generates_what_transformers_generates(exported: Make, checkpoint: Make) -> None:
    genai = pytest.importorskip("onnxruntime_genai")
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint("llama")).eval()
    prompt = [5, 7, 9, 11]
    wanted = model.generate(torch.tensor([prompt]), max_new_tokens=6, do_sample=False)[0].tolist()
    opened = genai.Model(str(exported("llama").path))
    parameters = genai.GeneratorParams(opened)
    parameters.set_search_options(max_length=len(prompt) + 6)
    generator = genai.Generator(opened, parameters)
    generator.append_tokens(np.array([prompt], dtype=np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    assert [int(token) for token in generator.get_sequence(0)] == wanted
