"""What stands in a checkpoint's folder, read without torch and without transformers; what lacks gets one sentence.

A folder is data, by whomever: what leads out of it, by a name or by a link, is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.sizes import budgets

CONFIG, ADAPTER = "config.json", "adapter_config.json"
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_INDICES = tuple(f"{name}.index.json" for name in _WEIGHTS)


@dataclass(frozen=True)
class Folder:
    """A checkpoint, and the adapter that is to be merged into it, if there is one."""

    path: Path
    config: Mapping[str, Any]
    adapter: Path | None = None

    @property
    def architecture(self) -> str | None:
        names = self.config.get("architectures")
        return str(names[0]) if isinstance(names, list) and names else None

    @property
    def foreign_code(self) -> Mapping[str, Any]:
        """Classes that the checkpoint brings along as Python files, by the Auto class that finds them."""
        found = self.config.get("auto_map")
        return found if isinstance(found, dict) else {}

    def absolute(self) -> Folder:
        adapter = None if self.adapter is None else self.adapter.absolute()
        return Folder(self.path.absolute(), self.config, adapter)

    def setting(self, file: str, name: str) -> Any:
        """One entry of a JSON file beside the config; None where either is missing."""
        path = self.path / file
        return read_json(path).get(name) if path.is_file() else None


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether this is a folder that transformers or PEFT has saved a model to."""
    return _first_file(Path(path), CONFIG, ADAPTER) is not None


def read_folder(path: str | os.PathLike[str]) -> Folder:
    """The checkpoint in a folder, or in the folder that an adapter names."""
    folder = Path(path)
    if not folder.is_dir():
        raise DeclarationError(f"`{folder}` is no folder: name one with a {CONFIG} and the weights of a model")
    if (folder / ADAPTER).is_file() and _first_file(folder, *_WEIGHTS, *_INDICES) is None:
        return _read_base(folder)
    _refuse_ways_out(folder)
    if not (folder / CONFIG).is_file():
        raise DeclarationError(f"`{folder}` has no {CONFIG}, which says what model it holds")
    _require_weights(folder)
    return _folder_with(folder)


def _read_base(folder: Path) -> Folder:
    """An adapter's own weights are trained for a checkpoint elsewhere: the one path that may lead out of a folder."""
    _refuse_ways_out(folder)
    name = str(read_json(folder / ADAPTER).get("base_model_name_or_path") or "")
    places = [place for place in (Path(name), folder / name) if name and (place / CONFIG).is_file()]
    if not places:
        raise DeclarationError(
            f"the adapter in `{folder}` belongs to `{name}`, which is no folder with a {CONFIG} here: "
            f"name the folder as base_model_name_or_path in {ADAPTER}"
        )
    _refuse_ways_out(places[0])
    _require_weights(places[0])
    return _folder_with(places[0], folder)


def _folder_with(path: Path, adapter: Path | None = None) -> Folder:
    config = read_json(path / CONFIG)
    _refuse_endless(path, config)
    return Folder(path, config, adapter)


def read_json(path: Path) -> dict[str, Any]:
    try:
        size = path.stat().st_size
        found = json.loads(path.read_text(encoding="utf-8")) if size <= budgets.LARGEST_SETTINGS else None
    except (OSError, ValueError, RecursionError) as error:
        raise DeclarationError(f"`{path}` cannot be read as JSON: {error}") from error
    if size > budgets.LARGEST_SETTINGS:
        raise DeclarationError(f"`{path}` has {size} bytes, too many for settings")
    if not isinstance(found, dict):
        raise DeclarationError(f"`{path}` holds a {type(found).__name__}, not settings by name")
    return found


def _first_file(folder: Path, *names: str) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _require_weights(folder: Path) -> None:
    if _first_file(folder, *_WEIGHTS) is not None:
        return
    index = _first_file(folder, *_INDICES)
    if index is None:
        raise DeclarationError(f"`{folder}` has no weights: neither {_WEIGHTS[0]} nor {_WEIGHTS[1]}, whole or in parts")
    for part in _parts_listed(index):
        if Path(part).is_absolute() or ".." in Path(part).parts:
            raise DeclarationError(f"`{index.name}` names `{part}`, outside its own folder: refused")
        if not (folder / part).is_file():
            raise DeclarationError(f"`{index.name}` names `{part}`, which is not in `{folder}`")


def _parts_listed(index: Path) -> list[str]:
    places = read_json(index).get("weight_map", {})
    if not isinstance(places, dict) or not all(isinstance(part, str) for part in places.values()):
        raise DeclarationError(f"`{index}` does not say in which file each weight lies")
    return sorted(set(places.values()))


# ---- a folder is data

_COUNTS = (
    "num_hidden_layers", "num_layers", "n_layers", "n_layer", "encoder_layers", "decoder_layers", "num_encoder_layers",
    "num_decoder_layers", "num_hidden_groups", "num_experts", "num_local_experts", "n_routed_experts", "depths",
    "num_attention_heads", "num_key_value_heads", "num_blocks",
)  # fmt: skip
"""What configs call the numbers of their parts, each of which is made one by one."""
_WIDTHS = ("embedding_size", "hidden_size", "d_model", "n_embd", "d_embed", "embed_dim", "dim", "hidden_dim")
_ROWS = (
    "vocab_size",
    "intermediate_size",
    "ffn_dim",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "d_ff",
    "n_inner",
    *_WIDTHS,
)
"""What they call the sizes of their weights: each row of them is as wide as the narrowest of the widths, or wider."""
_PLACES = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_source_positions", "n_ctx")
"""Of which many models make a list."""


def _refuse_endless(folder: Path, config: Mapping[str, Any]) -> None:
    """What a config asks for must be possible, and be covered by weights: before anything of it is made."""
    stored = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    what = f"`{CONFIG}` of `{folder}` asks for"
    for part in _settings_within(config):
        for names, most in ((_COUNTS, budgets.MOST_PARTS_OF_A_MODEL), (_PLACES, budgets.MOST_PLACES_OF_A_MODEL)):
            for name in names:
                if (number := _number_in(part, name)) > most:
                    raise DeclarationError(f"{what} `{name}` = {number:.4g}, more than the {most:,} that are made")
        width = min(filter(None, (_number_in(part, name) for name in _WIDTHS)), default=1.0)
        for name in _ROWS:
            if (number := _number_in(part, name)) * width > max(stored, budgets.FEW_WEIGHTS):
                asked = f"{number:.4g} rows of {width:.4g} weights each (`{name}`)"
                raise DeclarationError(f"{what} {asked}, and all files in the folder have {stored:,} bytes")


def _settings_within(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Those of a model, and of the models that it is made of."""
    waiting = [config]
    while waiting:
        yield (one := waiting.pop())
        waiting += [value for value in one.values() if isinstance(value, dict)]


def _number_in(settings: Mapping[str, Any], name: str) -> float:
    """A number, or the sum of a list of them; 0 where there is none."""
    found = settings.get(name)
    numbers = [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, (int, float))]
    return float(min(sum(numbers), 10**300))


def _refuse_ways_out(folder: Path) -> None:
    """Files that lie elsewhere are read, or copied into the export, as if they were the checkpoint's."""
    homes = list(_homes_of(folder))
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]  # `.git` and `.cache` are nobody's model
        for path in (Path(place, name) for name in sorted((*folders, *files))):
            if path.is_symlink() and not any(_target_of(path).is_relative_to(home) for home in homes):
                name, target = path.relative_to(folder).as_posix(), path.readlink()
                raise DeclarationError(
                    f"`{name}` in `{folder}` is a link to `{target}`, outside its own folder: refused"
                )


def _homes_of(folder: Path) -> Iterator[Path]:
    """The folder, and in Hugging Face's cache the one that its snapshots are linked to."""
    own = folder.resolve()
    yield own
    if own.parent.name == "snapshots":
        yield own.parent.parent / "blobs"


def _target_of(link: Path) -> Path:
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # a link to itself
        return Path(os.sep)
