"""The folder of an export: what its files are called, for those who load them.

It is made beside its place, and takes that of what stands there when all is right (`onnxfile/folder_exchange.py`).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch

from anyshape.checkpoints.built_model import BuiltModel
from anyshape.checkpoints.decoders import context_length
from anyshape.checkpoints.folders import ADAPTER, CONFIG, Folder, read_json
from anyshape.checkpoints.parts import ModelPart, ends_of, first_set
from anyshape.errors import AnyshapeError, DeclarationError
from anyshape.onnxfile.destination import check_writable, refuse_lasting
from anyshape.onnxfile.placement import listed_data
from anyshape.sizes.notation import did_you_mean
from anyshape.verification.final_file import computation_of

# ---- names


@dataclass(frozen=True)
class Layout:
    """Names of files, by the name of their part."""

    name: str
    folder: str = ""
    suffix: str = ""

    def file(self, part: str) -> str:
        name = f"{part}{self.suffix}.onnx"
        return f"{self.folder}/{name}" if self.folder else name


LAYOUTS = ("optimum", "transformers.js")
_JS_SUFFIXES = {torch.float32: "", torch.float16: "_fp16"}


def layout_for(name: str, dtype: torch.dtype) -> Layout:
    if name == "optimum":
        return Layout(name)
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


def put_rest(built: BuiltModel, layout: Layout, files: Mapping[Path, ModelPart], stage: Path) -> list[str]:
    """Put beside the model files what belongs to them; what is to be said about it."""
    for name, path in companions(built.folder).items():
        shutil.copyfile(path, stage / name)
    with_data = list(_rename_data(files))
    if layout.name == "transformers.js":
        _name_data_in_config(stage / CONFIG, with_data)
    elif built.choice.kind == "decoder" and built.choice.cached:
        [(file, part)] = files.items()
        settings = _genai_config(built.model, part, file.name)
        if settings is None:
            return ["no genai_config.json: ONNX Runtime GenAI takes one shape of keys and values for all layers"]
        _put_json(stage / "genai_config.json", settings)
    return []


def _put_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


# ---- what ONNX Runtime GenAI wants to know about a decoder with a cache

_TYPES = (
    "ernie4_5", "gemma", "gemma2", "gemma3_text", "granite", "internlm2", "llama", "mistral", "nemotron", "olmo", "phi",
    "phi3", "qwen2", "qwen3", "smollm3",
)  # fmt: skip
"""The types that GenAI knows and runs as one decoder with keys and values; any other decoder is just a `decoder`."""


def _genai_config(model: Any, part: ModelPart, file: str) -> dict[str, Any] | None:
    """The settings, or None where layers differ in their heads: GenAI gives all of them one shape."""
    text = model.config.get_text_config(decoder=True)
    past = part.make_call(**part.example)["past_key_values"]
    shapes = {(pair[name].shape[1], pair[name].shape[3]) for pair in past for name in ("key", "value")}
    if len(shapes) != 1:
        return None
    [(heads, size)] = shapes
    tokens = getattr(model, "generation_config", None) or text
    ends, length = ends_of(tokens), context_length(text) or 2048
    ports = {name: name for name in ("input_ids", "attention_mask", "position_ids") if name in part.dims}
    model_settings = {
        "bos_token_id": _token(tokens, text, "bos_token_id", ends),
        "context_length": length,
        "decoder": {
            "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
            "filename": file,
            "head_size": size,
            "hidden_size": text.hidden_size,
            "inputs": {**ports, **_names_of_pairs("past", "past_key_values")},
            "outputs": {"logits": "logits", **_names_of_pairs("present", "present")},
            "num_attention_heads": text.num_attention_heads,
            "num_hidden_layers": len(past),
            "num_key_value_heads": heads,
        },
        "eos_token_id": ends,
        "pad_token_id": _token(tokens, text, "pad_token_id", ends),
        "type": text.model_type if text.model_type in _TYPES else "decoder",
        "vocab_size": text.vocab_size,
    }
    return {"model": model_settings, "search": {"max_length": length, **_SEARCH}}


def _names_of_pairs(role: str, name: str) -> dict[str, str]:
    return {f"{role}_{part}_names": f"{name}.%d.{part}" for part in ("key", "value")}


_SEARCH = {
    "do_sample": False,
    "num_beams": 1,
    "past_present_share_buffer": False,
    "temperature": 1.0,
    "top_k": 1,
    "top_p": 1.0,
}
"""Greedy, as the file was checked; a past grows with every token, so it shares no buffer with what comes back."""


def _token(tokens: Any, config: Any, name: str, ends: list[int]) -> int:
    """A token that a config leaves open is the first that ends a text, as transformers takes it."""
    found = first_set(tokens, name)
    found = first_set(config, name) if found is None else found
    return int(found if found is not None else (ends or [0])[0])


# ---- weights beside a file, as optimum and transformers.js look for them


def _rename_data(models: Iterable[Path]) -> Iterator[str]:
    """`model.onnx.0123456789abcdef.data` -> `model.onnx_data`; the names of the files that have such data."""
    for model in models:
        data = next((model.with_name(name) for name in listed_data(model)), None)
        if data is None:
            continue
        renamed, judged = model.with_name(f"{model.name}_data"), computation_of(model)
        proto = onnx.load(model, load_external_data=False)
        for tensor in proto.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = renamed.name
        data.rename(renamed)
        onnx.save(proto, model)
        if computation_of(model) != judged:
            raise AnyshapeError(f"{model.name} with its data renamed is not what was checked: please report this")
        yield model.name


def _name_data_in_config(config: Path, files: Sequence[str]) -> None:
    if not files:
        return
    settings = read_json(config)
    own = settings.setdefault("transformers.js_config", {})
    own["use_external_data_format"] = {**own.get("use_external_data_format", {}), **dict.fromkeys(files, 1)}
    _put_json(config, settings)


# ---- where it goes


def check_folder(out: str | os.PathLike[str], source: Path) -> Path:
    """The folder to write to, or one sentence about why not."""
    path = Path(out).absolute()
    if path.exists() and not path.is_dir():
        raise DeclarationError(f"`{out}` is a file: a checkpoint is exported to a folder")
    if path.resolve() == source.resolve():
        raise DeclarationError(f"`{out}` is the checkpoint itself: name another folder")
    check_writable(Path(out))
    refuse_lasting(Path(out))
    return path
