"""How long a slice is at each of the samples, where torch has only a symbol for it.

Torch makes a new symbol for the length of `x[:, a:b]` wherever it cannot tell how the borders lie. Python's rules tell
it for every sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from anyshape._torch.sampling import Samples
from anyshape.conversion.evaluating import Values


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
