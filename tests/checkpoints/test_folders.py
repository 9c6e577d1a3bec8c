from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from anyshape import DeclarationError
from anyshape.checkpoints.folders import is_checkpoint, read_folder
from anyshape.sizes import budgets


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


# ---- a folder is data


@pytest.mark.parametrize("part", ["../w.safetensors", "sub/../../w.safetensors", "/w.safetensors"])
def test_a_list_of_weights_that_leads_out_of_the_folder_is_refused(tmp_path: Path, part: str) -> None:
    (tmp_path / "w.safetensors").touch()
    folder = _folder(tmp_path / "model", config__json="{}")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": part}}))
    assert _refusal(folder) == f"`model.safetensors.index.json` names `{part}`, outside its own folder: refused"


@pytest.mark.parametrize("places", [3, ["a"], {"a": 5}, {"a": ["b"]}, None])
def test_a_list_of_weights_is_a_list_of_files(tmp_path: Path, places: object) -> None:
    folder = _folder(tmp_path / "model", config__json="{}")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    assert _refusal(folder) == (
        "`/home/model/model.safetensors.index.json` does not say in which file each weight lies"
    )


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "model.safetensors", "deeper/vocab.txt"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = _folder(tmp_path / "model", config__json="{}", model__safetensors="")
    (tmp_path / "secret").write_text("{}")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "secret")
    said = f"`{name}` in `/home/model` is a link to `/home/secret`, outside its own folder: refused"
    assert _refusal(folder) == said


def test_a_link_through_others_and_a_linked_folder_lead_out_as_well(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model", config__json="{}", model__safetensors="")
    (tmp_path / "elsewhere").mkdir()
    (folder / "b").symlink_to("../elsewhere")
    (folder / "a.json").symlink_to("b/c.json")
    assert _refusal(folder).endswith(", outside its own folder: refused")
    (folder / "b").unlink()
    assert read_folder(folder).path == folder  # now the link leads nowhere, but inside
    (folder / "a.json").unlink()
    (folder / "a.json").symlink_to("a.json")
    assert _refusal(folder) == "`a.json` in `/home/model` is a link to `a.json`, outside its own folder: refused"


def _cached(tmp_path: Path) -> Path:
    """A checkpoint as Hugging Face's cache keeps it."""
    blobs, snapshot = tmp_path / "models--a--b/blobs", tmp_path / "models--a--b/snapshots/f00d"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name, text in {"config.json": '{"architectures": ["A"]}', "model.safetensors": ""}.items():
        (blobs / f"hash_of_{name}").write_text(text)
        (snapshot / name).symlink_to(f"../../blobs/hash_of_{name}")
    return snapshot


def test_the_layout_of_the_cache_is_read(tmp_path: Path) -> None:
    snapshot = _cached(tmp_path)
    assert read_folder(snapshot).architecture == "A"
    (tmp_path / "name").symlink_to(snapshot)
    assert read_folder(tmp_path / "name").architecture == "A"


def test_what_looks_like_the_cache_leads_nowhere_else(tmp_path: Path) -> None:
    snapshot = _cached(tmp_path)
    (tmp_path / "models--a--b/secret.json").touch()
    (snapshot / "a.json").symlink_to("../../secret.json")
    assert _refusal(snapshot).endswith("is a link to `../../secret.json`, outside its own folder: refused")
    (snapshot / "a.json").unlink()
    (tmp_path / "models--a--b/blobs").rename(tmp_path / "elsewhere")
    (tmp_path / "models--a--b/blobs").symlink_to(tmp_path / "elsewhere")
    assert _refusal(snapshot).endswith(
        "is a link to `../../blobs/hash_of_config.json`, outside its own folder: refused"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": ' * 100_000, "maximum recursion depth exceeded"),
        ('{"a": ' + "9" * 5000 + "}", "Exceeds the limit (4300 digits) for integer string conversion"),
        ("\ud800", "'utf-8' codec can't decode byte"),
    ],
)
def test_json_that_no_reader_takes_is_one_sentence(tmp_path: Path, text: str, why: str) -> None:
    folder = _folder(tmp_path / "model", model__safetensors="")
    (folder / "config.json").write_bytes(text.encode(errors="surrogatepass"))
    assert _refusal(folder).startswith(f"`/home/model/config.json` cannot be read as JSON: {why}")


def test_settings_of_other_types_are_no_settings(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model", config__json='{"architectures": 5, "auto_map": "a"}', model__safetensors="")
    found = read_folder(folder)
    assert (found.architecture, found.foreign_code) == (None, {})


def test_settings_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "LARGEST_SETTINGS", 1)
    folder = _folder(tmp_path / "model", config__json="{}", model__safetensors="")
    assert _refusal(folder) == "`/home/model/config.json` has 2 bytes, too many for settings"


ENDLESS = {
    "`num_hidden_layers` = 1e+18, more than the 1,000 that are made": {"num_hidden_layers": 10**18},
    "`depths` = 3000, more than the 1,000 that are made": {"vision_config": {"depths": [1000, 1000, 1000]}},
    "`n_positions` = 1e+12, more than the 134,217,728 that are made": {"n_positions": 1e12},
    "1e+15 rows of 64 weights each (`vocab_size`), and all files in the folder have N bytes": {
        "vocab_size": 10**15, "hidden_size": 64,
    },
    "1e+300 rows of 1 weights each (`vocab_size`), and all files in the folder have N bytes": {"vocab_size": 10**400},
    "1e+05 rows of 1e+05 weights each (`d_model`), and all files in the folder have N bytes": {
        "text_config": {"d_model": 10**5}
    },
}  # fmt: skip


@pytest.mark.parametrize(("asked", "config"), ENDLESS.items(), ids=list(ENDLESS))
def test_a_config_that_asks_for_more_than_there_is_gets_one_sentence(
    tmp_path: Path, asked: str, config: object
) -> None:
    path = _folder(tmp_path / "model", config__json=json.dumps(config), model__safetensors="weights")
    said = re.sub(r"have \d+ bytes", "have N bytes", _refusal(path))
    assert said == f"`config.json` of `/home/model` asks for {asked}"


def test_a_config_may_ask_for_what_its_weights_cover_and_for_what_costs_little(tmp_path: Path) -> None:
    settings = {
        "num_hidden_layers": "12",
        "vocab_size": 30522,
        "hidden_size": 768,
        "depths": None,
        "n_positions": 2**20,
    }
    path = _folder(tmp_path / "model", config__json=json.dumps(settings), model__safetensors="weights")
    assert read_folder(path).config == settings
    large = _folder(tmp_path / "large", config__json=json.dumps({"vocab_size": 10**5, "d_model": 10**4}))
    (large / "model.safetensors").touch()
    os.truncate(large / "model.safetensors", 2 * 10**9)  # which takes no room
    assert read_folder(large).config["d_model"] == 10**4
