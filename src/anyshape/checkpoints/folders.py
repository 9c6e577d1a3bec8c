"""What stands in a checkpoint's folder, read without torch and without transformers; what lacks gets one sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyshape.errors import DeclarationError

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
        names = self.config.get("architectures") or ()
        return str(names[0]) if names else None

    @property
    def foreign_code(self) -> Mapping[str, Any]:
        """Classes that the checkpoint brings along as Python files, by the Auto class that finds them."""
        return self.config.get("auto_map") or {}

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
    if not (folder / CONFIG).is_file():
        raise DeclarationError(f"`{folder}` has no {CONFIG}, which says what model it holds")
    _require_weights(folder)
    return Folder(folder, read_json(folder / CONFIG))


def _read_base(folder: Path) -> Folder:
    name = str(read_json(folder / ADAPTER).get("base_model_name_or_path") or "")
    places = [place for place in (Path(name), folder / name) if name and (place / CONFIG).is_file()]
    if not places:
        raise DeclarationError(
            f"the adapter in `{folder}` belongs to `{name}`, which is no folder with a {CONFIG} here: "
            f"name the folder as base_model_name_or_path in {ADAPTER}"
        )
    _require_weights(places[0])
    return Folder(places[0], read_json(places[0] / CONFIG), folder)


def read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DeclarationError(f"`{path}` cannot be read as JSON: {error}") from error
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
    for part in sorted(set(read_json(index).get("weight_map", {}).values())):
        if not (folder / part).is_file():
            raise DeclarationError(f"`{index.name}` names `{part}`, which is not in `{folder}`")
