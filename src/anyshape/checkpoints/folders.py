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
    return Folder(folder, read_json(folder / CONFIG))


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
    return Folder(places[0], read_json(places[0] / CONFIG), folder)


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
