"""The folder of an export: what its files are called, for those who load them; written whole or not at all.

It is made beside its place, and put there when everything is right.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch

from anyshape.checkpoints.folders import ADAPTER, CONFIG, Folder, read_json
from anyshape.errors import DeclarationError
from anyshape.sizes.notation import did_you_mean

# ---- names


@dataclass(frozen=True)
class Layout:
    """Names of files, by the name of their part."""

    name: str
    folder: str = ""
    suffix: str = ""
    for_genai: bool = False

    def file(self, part: str) -> str:
        name = f"{part}{self.suffix}.onnx"
        return f"{self.folder}/{name}" if self.folder else name


LAYOUTS = ("optimum", "transformers.js")
_JS_SUFFIXES = {torch.float32: "", torch.float16: "_fp16"}


def layout_for(name: str, dtype: torch.dtype) -> Layout:
    if name == "optimum":
        return Layout(name, for_genai=True)
    if name != "transformers.js":
        raise DeclarationError(f"no layout is called `{name}`{did_you_mean(name, LAYOUTS)}: {' or '.join(LAYOUTS)}")
    if dtype not in _JS_SUFFIXES:
        written = str(dtype).removeprefix("torch.")
        raise DeclarationError(f"transformers.js has no name for files in {written}: float32 or float16")
    return Layout(name, "onnx", _JS_SUFFIXES[dtype])


# ---- small files beside the models


_KEPT = (".json", ".txt", ".model", ".jinja", ".tiktoken", ".spm", ".bpe", ".vocab")
"""Config, tokenizer and processors; weights and Python code are left behind."""


def companions(folder: Folder) -> dict[str, Path]:
    """The small files that belong to a model: config, tokenizer, processors; an adapter's own come first."""
    found: dict[str, Path] = {}
    for place in filter(None, (folder.path, folder.adapter)):
        found |= {path.name: path for path in sorted(place.iterdir()) if _is_companion(path)}
    return found | {CONFIG: folder.path / CONFIG}


def _is_companion(path: Path) -> bool:
    is_index = path.name.endswith(".index.json") or path.name == ADAPTER
    return path.is_file() and path.suffix in _KEPT and not is_index and path.name != "requirements.txt"


def put_companions(folder: Folder, layout: Layout, stage: Path, models: Iterable[str]) -> list[str]:
    """Copy what belongs to the model beside its files; the names."""
    found = companions(folder)
    for name, path in found.items():
        shutil.copyfile(path, stage / name)
    large = list(_rename_data(stage, models)) if layout.name == "transformers.js" else []
    if large:
        _name_data_in_config(stage / CONFIG, large)
    return list(found)


def put_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


# ---- weights beside a file, as transformers.js looks for them


def _rename_data(stage: Path, models: Iterable[str]) -> Iterator[str]:
    """`model.onnx.data` -> `model.onnx_data`; the names of the files that have such data."""
    for model in models:
        data = stage / f"{model}.data"
        if not data.exists():
            continue
        renamed = data.with_name(f"{Path(model).name}_data")
        proto = onnx.load(stage / model, load_external_data=False)
        for tensor in proto.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = renamed.name
        data.rename(renamed)
        onnx.save(proto, stage / model)
        yield Path(model).name


def _name_data_in_config(config: Path, files: Iterable[str]) -> None:
    settings = read_json(config)
    own = settings.setdefault("transformers.js_config", {})
    own["use_external_data_format"] = {**own.get("use_external_data_format", {}), **dict.fromkeys(files, 1)}
    put_json(config, settings)


# ---- whole or not at all


@dataclass(frozen=True)
class FolderStage:
    """A temporary folder whose files are to go to a destination."""

    path: Path
    destination: Path
    aside: Path
    """For files that are replaced, until all is done."""

    @property
    def files(self) -> tuple[str, ...]:
        """All of them, below the folder."""
        return tuple(sorted(path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file()))

    def commit(self) -> None:
        """Put every file in its place; what was there before comes back if anything goes wrong."""
        files = [Path(file) for file in self.files]
        made = [folder for folder in _folders_of(self.destination, files) if not folder.exists()]
        done: list[Path] = []
        try:
            for folder in made:
                folder.mkdir()
            for file in [*files, *_outdated_weights(files)]:
                self._place_file(file, done)
        except BaseException:
            self._restore_folder(done, made)
            raise

    def _place_file(self, file: Path, done: list[Path]) -> None:
        done.append(file)
        old, kept = self.destination / file, self.aside / file
        if old.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            old.replace(kept)
        if (self.path / file).exists():
            (self.path / file).replace(old)

    def _restore_folder(self, done: list[Path], made: list[Path]) -> None:
        for file in reversed(done):
            if not (self.path / file).exists():
                (self.destination / file).unlink(missing_ok=True)
            if (self.aside / file).exists():
                (self.aside / file).replace(self.destination / file)
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _outdated_weights(files: list[Path]) -> list[Path]:
    """Weights beside a model that is replaced by one without."""
    beside = [file.with_name(f"{file.name}.data") for file in files if file.suffix == ".onnx"]
    return [data for data in beside if data not in files]


def _folders_of(destination: Path, files: list[Path]) -> list[Path]:
    """The destination and the folders below it, each after the one that it stands in."""
    below = sorted({destination / parent for file in files for parent in file.parents})
    return [destination, *(folder for folder in below if folder != destination)]


@contextlib.contextmanager
def staged_folder(destination: Path) -> Iterator[FolderStage]:
    """A place for files beside the destination, gone afterwards whatever happens."""
    with tempfile.TemporaryDirectory(prefix=".anyshape-", dir=destination.parent) as folder:
        stage = FolderStage(Path(folder) / "new", destination, Path(folder) / "old")
        stage.path.mkdir()
        yield stage


def check_folder(out: str | os.PathLike[str], source: Path) -> Path:
    """The folder to write to, or one sentence about why not."""
    path = Path(out).absolute()
    if path.exists() and not path.is_dir():
        raise DeclarationError(f"`{out}` is a file: a checkpoint is exported to a folder")
    if path.resolve() == source.resolve():
        raise DeclarationError(f"`{out}` is the checkpoint itself: name another folder")
    if not path.parent.is_dir():
        raise DeclarationError(f"the folder `{path.parent}` does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DeclarationError(f"the folder `{path if path.exists() else path.parent}` cannot be written to")
    return path
