"""A transformers checkpoint in a folder becomes ONNX files in a folder: its model, its calls, its files.

`export_parts.py` tells the stages in order; each file of the model is written by the verb `export`.
torch and transformers are imported when a checkpoint is exported; a missing one gets one sentence.

>>> import transformers
>>> size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
>>> transformers.BertModel(transformers.BertConfig(vocab_size=50, **size)).save_pretrained("bert")
>>> written = anyshape.checkpoints.export_checkpoint("bert", "bert-onnx", quick=True)
>>> str(written).splitlines()[0]
'checked: bert-onnx/, BertModel in 1 model file'
>>> anyshape.checkpoints.is_checkpoint("bert")
True
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

    - `folder`: what `save_pretrained` wrote; `out`: the folder of the files
    - `layout`: `"optimum"` or `"transformers.js"`, the names and places of the files
    - `task`: by default what the config's architecture is for; `dtype`: of the weights
    - `sizes`: narrows dims by their names, `{"sequence_length": "1..128"}`
    - `trust_remote_code`: run Python code of the folder
    - `seed`, `progress` and other `options`: those of `export`, for every file
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
