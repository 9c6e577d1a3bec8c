"""`x[:, :int(lengths.max())]`: a slice whose end is a value of the call.

Recognised: a slice with a border that a trace does not know and that leaves a length it does not know. Torch computes
that length in one way when it traces and in another when it translates, and fails between them. Put there: an operator
that is ONNX's Slice, whose borders are cut to the axis as Python's are, with a length of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from anyshape.conversion.control_flow.forks import is_size
from anyshape.conversion.control_flow.samples_slicing import has_unknown_length
from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.repair_answering import answered


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    def getitem(tensor: Tensor, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        # an ellipsis, None or a tensor among the parts moves the axes
        if not all(isinstance(part, slice) for part in parts) or not any(map(_is_unknown, parts)):
            return NotImplemented
        used("a slice up to a value: cut in the file")
        for axis, part in enumerate(parts):
            if _is_unknown(part):
                start = 0 if part.start is None else part.start
                end = tensor.shape[axis] if part.stop is None else part.stop
                tensor = torch.ops.anyshape.cut(tensor, axis, start, end)
            elif part != slice(None):
                tensor = tensor[(slice(None),) * axis + (part,)]
        return tensor

    with answered({(Tensor, "__getitem__"): getitem}):
        yield


def _is_unknown(part: slice) -> bool:
    borders = [number for number in (part.start, part.stop) if isinstance(number, torch.SymInt)]
    return has_unknown_length(part) and not all(map(is_size, borders))


VALUE_SLICES = Repair("slices up to a value", _apply)
