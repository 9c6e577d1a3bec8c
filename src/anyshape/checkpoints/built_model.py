"""From a folder to a model in memory: offline, in one precision, with every weight that its class needs.

An adapter of PEFT is merged into the weights that were loaded; no file is changed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from anyshape.checkpoints.folders import ADAPTER, Folder, read_json
from anyshape.checkpoints.tasks import Choice, choose
from anyshape.errors import AnyshapeError, DeclarationError, named_line


@dataclass(frozen=True)
class BuiltModel:
    """A model, ready to be exported."""

    folder: Folder
    model: Any
    config: Any
    choice: Choice
    notes: tuple[str, ...]


def build(folder: Folder, *, task: str | None, dtype: torch.dtype, trust_remote_code: bool) -> BuiltModel:
    """Load the model, or say in one sentence why not."""
    _refuse_quantised(folder)
    choice = choose(folder, task, trust_remote_code=trust_remote_code)
    model, notes = _model_and_notes(folder, choice.model_class, dtype, trust_remote_code=trust_remote_code)
    if folder.adapter is not None:
        model = with_adapter(model, folder.adapter)
        notes.append(f"the adapter in `{folder.adapter}` is merged into the weights")
    return BuiltModel(folder, model.eval().requires_grad_(requires_grad=False), model.config, choice, tuple(notes))


def _refuse_quantised(folder: Folder) -> None:
    found = folder.config.get("quantization_config")
    if found:
        method = found.get("quant_method", "an unknown method") if isinstance(found, Mapping) else found
        raise DeclarationError(
            f"the weights of `{folder.path}` are quantised ({method}): give the checkpoint before that"
        )


def _model_and_notes(
    folder: Folder, model_class: Any, dtype: torch.dtype, *, trust_remote_code: bool
) -> tuple[Any, list[str]]:
    options = {"trust_remote_code": True} if trust_remote_code else {}
    try:
        model, info = model_class.from_pretrained(
            str(folder.path), dtype=dtype, local_files_only=True, output_loading_info=True, **options
        )
    except Exception as error:
        what = f"`{folder.path}` cannot be loaded as `{model_class.__name__}`"
        raise DeclarationError(f"{what}: {named_line(error)}") from error
    missing = sorted({*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])})
    if missing:
        raise DeclarationError(f"`{folder.path}` lacks {_some_names(missing)}, which `{model_class.__name__}` needs")
    notes = list(_notes_on_weights(folder, info, dtype))
    if folder.foreign_code and not trust_remote_code:
        notes.append("the code that the checkpoint brings along is not run: transformers has its own")
    return model, notes


def _notes_on_weights(folder: Folder, info: Mapping[str, Any], dtype: torch.dtype) -> Iterator[str]:
    unused = sorted(info["unexpected_keys"])
    if unused:
        yield f"{_some_names(unused)} of the checkpoint {'is' if len(unused) == 1 else 'are'} not used"
    stored = folder.config.get("dtype") or folder.config.get("torch_dtype")
    if stored not in (None, "float32") and dtype == torch.float32:
        yield f"the weights are stored in {stored} and written in float32: --dtype {stored} keeps them"


def _some_names(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more weights"


# ---- adapters


def with_adapter(model: Any, adapter: Path) -> Any:
    """The model with an adapter's weights added to its own."""
    if importlib.util.find_spec("peft") is None:
        raise AnyshapeError(f"`{adapter}` is a PEFT adapter, and peft is not installed: pip install peft")
    peft: Any = importlib.import_module("peft")  # no dependency of ours, so nothing that a type checker could find
    try:
        adapted = peft.PeftModel.from_pretrained(model, str(adapter), local_files_only=True)
    except Exception as error:
        raise DeclarationError(f"the adapter in `{adapter}` cannot be put on its model: {named_line(error)}") from error
    if not hasattr(adapted.base_model, "merge_and_unload"):
        kind = read_json(adapter / ADAPTER).get("peft_type")
        raise DeclarationError(f"the adapter in `{adapter}` is of the kind {kind}, which cannot be merged into weights")
    return adapted.merge_and_unload()
