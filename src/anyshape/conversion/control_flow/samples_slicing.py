"""How long a slice is: whether that depends on values, and at each of the samples where torch has only a symbol.

Torch makes a new symbol for the length of `x[:, a:b]` wherever it cannot tell how the borders lie. Python's rules tell
it for every sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy
import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from anyshape.conversion.control_flow.samples_sampling import Samples
from anyshape.sizes.evaluation import Values
from anyshape.torchkit.capture_expressions import expression_of


def has_unknown_length(part: slice) -> bool:
    """Whether a slice has a border that depends on values, and a length that does."""
    start, end = 0 if part.start is None else part.start, part.stop
    if any(isinstance(border, torch.Tensor) for border in (start, end)):
        return False
    borders = [number for number in (start, end) if isinstance(number, torch.SymInt)]
    if part.step not in (None, 1) or not any(free_unbacked_symbols(number) for number in borders):
        return False
    return end is None or not isinstance(expression_of(end - start), sympy.Integer)


def length_of_slice(size: Any, start: Any, end: Any, samples: Samples) -> Values | None:
    """Of an axis of this size, from one border to another; None where that depends on values."""
    whole = _values(size, samples)
    first, last = _values(0 if start is None else start, samples), _values(size if end is None else end, samples)
    if whole is None or first is None or last is None:
        return None
    first, last = (np.clip(np.where(one < 0, one + whole, one), 0, whole) for one in (first, last))
    length: Values = np.maximum(last - first, 0)
    return length


def _values(number: Any, samples: Samples) -> Values | None:
    if isinstance(number, int):
        return np.full(samples.rows.shape, number)
    return samples.values(number.node.expr) if isinstance(number, torch.SymInt) else None
