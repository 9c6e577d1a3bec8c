"""ONNX files that are right at the traced size and wrong elsewhere (in values, shapes or what they declare);
and right ones.

The sentence in `wrong` starts with where a file is wrong. `slightly` there: by more than 1e-4, not 1e-3, of the largest
value; `slightly, everywhere`: at the traced size too. What a file declares may be a lie at the traced size already.
"""

from __future__ import annotations

from .index_subjects import FILTER, JOINT, POSITIONS, RANKING, RECURRENT, SCATTER, SIZES_AS_VALUES
from .layer_subjects import ATTENTION, CACHED_STEP, FULL_MASK, MASKED_MEAN, MLP, STRIDED_CONV
from .right_files import RIGHT
from .subjects import FileCase, Subject
from .wrong_index_files import WRONG_INDICES
from .wrong_layer_files import WRONG_LAYERS

__all__ = ["RIGHT", "SUBJECTS", "WRONG", "FileCase", "Subject"]

SUBJECTS: tuple[Subject, ...] = (
    *(MLP, MASKED_MEAN, FULL_MASK, ATTENTION, CACHED_STEP, STRIDED_CONV),
    *(POSITIONS, JOINT, SCATTER, SIZES_AS_VALUES, RECURRENT, RANKING, FILTER),
)
WRONG: tuple[FileCase, ...] = (*WRONG_LAYERS, *WRONG_INDICES)
