from __future__ import annotations

import json
from pathlib import Path

import pytest

from anyshape import DeclarationError
from anyshape.checkpoints.folders import is_checkpoint, read_folder


def _folder(path: Path, **files: str) -> Path:
    path.mkdir(exist_ok=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text)
    return path


def _refusal(path: Path) -> str:
    with pytest.raises(DeclarationError) as refusal:
        read_folder(path)
    return str(refusal.value).replace(str(path.parent), "/home")


def test_a_folder_with_a_config_is_a_checkpoint(tmp_path: Path) -> None:
    assert is_checkpoint(_folder(tmp_path / "model", config__json="{}"))
    assert is_checkpoint(_folder(tmp_path / "adapter", adapter_config__json="{}"))
    assert not is_checkpoint(_folder(tmp_path / "other", readme__md=""))
    assert not is_checkpoint(tmp_path / "nothing")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    assert _refusal(tmp_path / "model") == (
        "`/home/model` is no folder: name one with a config.json and the weights of a model"
    )


def test_a_folder_needs_a_config(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model", model__safetensors="")
    assert _refusal(folder) == "`/home/model` has no config.json, which says what model it holds"


def test_a_config_that_is_no_json_is_named(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model", config__json="{", model__safetensors="")
    said = _refusal(folder)
    assert said.startswith("`/home/model/config.json` cannot be read as JSON: Expecting property name")
    _folder(folder, config__json="[1]")
    assert _refusal(folder) == "`/home/model/config.json` holds a list, not settings by name"


def test_weights_must_be_there(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model", config__json="{}")
    assert _refusal(folder) == (
        "`/home/model` has no weights: neither model.safetensors nor pytorch_model.bin, whole or in parts"
    )


def test_a_missing_part_of_the_weights_is_named(tmp_path: Path) -> None:
    weights = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    folder = _folder(tmp_path / "model", config__json="{}")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    (folder / weights["a"]).touch()
    assert _refusal(folder) == (
        "`model.safetensors.index.json` names `model-00002-of-00002.safetensors`, which is not in `/home/model`"
    )
    (folder / weights["b"]).touch()
    assert read_folder(folder).path == folder


def test_an_adapter_is_read_with_the_checkpoint_that_it_belongs_to(tmp_path: Path) -> None:
    base = _folder(tmp_path / "base", config__json='{"architectures": ["A", "B"]}', pytorch_model__bin="")
    adapter = _folder(tmp_path / "adapter", adapter_config__json='{"base_model_name_or_path": "../base"}')
    found = read_folder(adapter)
    assert (found.path.resolve(), found.adapter, found.architecture) == (base.resolve(), adapter, "A")


def test_an_adapter_of_a_checkpoint_that_is_not_here_is_refused(tmp_path: Path) -> None:
    adapter = _folder(tmp_path / "adapter", adapter_config__json='{"base_model_name_or_path": "meta/llama"}')
    assert _refusal(adapter) == (
        "the adapter in `/home/adapter` belongs to `meta/llama`, which is no folder with a config.json here: "
        "name the folder as base_model_name_or_path in adapter_config.json"
    )
