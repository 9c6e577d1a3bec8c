"""A transformers checkpoint in a folder becomes ONNX files in a folder: its model, its calls, its files.

`export_parts.py` tells the stages in order; each file of the model is written by the verb `export`.
torch and transformers are imported when a checkpoint is exported; a missing one gets one sentence.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from anyshape.checkpoints.folders import is_checkpoint, read_folder
from anyshape.errors import AnyshapeError
from anyshape.results.progress import told

if TYPE_CHECKING:
    from anyshape.checkpoints.export_parts import Exported


__all__ = ["export_checkpoint", "is_checkpoint"]


def export_checkpoint(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    layout: str = "optimum",
    task: str | None = None,
    dtype: Any = None,
    trust_remote_code: bool = False,
    sizes: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: bool | Callable[[str], None] | None = None,
    **options: Any,
) -> Exported:
    """Convert a transformers checkpoint to checked ONNX files in a folder, or raise and write nothing.

    `task` is by default what the config's architecture is for; `sizes` narrows dims by their names, such as
    `{"sequence_length": "1..128"}`. The other options are those of `export`, for every file.
    """
    source = read_folder(folder)
    if importlib.util.find_spec("transformers") is None:
        raise AnyshapeError(
            f"`{source.path}` is a checkpoint of transformers, which is not installed: pip install transformers"
        )
    from anyshape.checkpoints.export_parts import CheckpointOptions, export_folder

    with told(progress) as tell:
        chosen = CheckpointOptions(layout, task, dtype, trust_remote_code, sizes or {}, seed, tell, options)
        return export_folder(source, out, chosen)
