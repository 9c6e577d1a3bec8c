"""PEFT adapters: merged into the weights that were loaded for the export; no file is changed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from anyshape.checkpoints.folders import ADAPTER, read_json
from anyshape.errors import AnyshapeError, DeclarationError, first_line


def merged(model: Any, adapter: Path) -> Any:
    """The model with an adapter's weights added to its own."""
    if importlib.util.find_spec("peft") is None:
        raise AnyshapeError(f"`{adapter}` is a PEFT adapter, and peft is not installed: pip install peft")
    peft: Any = importlib.import_module("peft")
    try:
        adapted = peft.PeftModel.from_pretrained(model, str(adapter), local_files_only=True)
    except Exception as error:
        said = f"{type(error).__name__}: {first_line(error)}"
        raise DeclarationError(f"the adapter in `{adapter}` cannot be put on its model: {said}") from error
    if not hasattr(adapted.base_model, "merge_and_unload"):
        kind = read_json(adapter / ADAPTER).get("peft_type")
        raise DeclarationError(f"the adapter in `{adapter}` is of the kind {kind}, which cannot be merged into weights")
    return adapted.merge_and_unload()
