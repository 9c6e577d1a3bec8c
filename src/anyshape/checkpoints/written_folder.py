"""Where the files of an export stand and what they are called, for those who load them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch

from anyshape.checkpoints.folders import ADAPTER, CONFIG, Folder, read_json
from anyshape.errors import DeclarationError
from anyshape.sizes.notation import did_you_mean

_KEPT = (".json", ".txt", ".model", ".jinja", ".tiktoken", ".spm", ".bpe", ".vocab")
_JS_SUFFIXES = {torch.float32: "", torch.float16: "_fp16"}


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


def layout_for(name: str, dtype: torch.dtype) -> Layout:
    if name == "optimum":
        return Layout(name, for_genai=True)
    if name != "transformers.js":
        raise DeclarationError(f"no layout is called `{name}`{did_you_mean(name, LAYOUTS)}: {' or '.join(LAYOUTS)}")
    if dtype not in _JS_SUFFIXES:
        written = str(dtype).removeprefix("torch.")
        raise DeclarationError(f"transformers.js has no name for files in {written}: float32 or float16")
    return Layout(name, "onnx", _JS_SUFFIXES[dtype])


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
        _tell_of_data(stage / CONFIG, large)
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


def _tell_of_data(config: Path, files: Iterable[str]) -> None:
    settings = read_json(config)
    own = settings.setdefault("transformers.js_config", {})
    own["use_external_data_format"] = {**own.get("use_external_data_format", {}), **dict.fromkeys(files, 1)}
    put_json(config, settings)
