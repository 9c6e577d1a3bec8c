"""Translations of torch operators that torch lacks, or whose own holds at the traced sizes only.

An operator with a translation is not decomposed, so no decomposition can look at its sizes. Each function is written
for torch's table: ONNX values and Python numbers in, ONNX values out. The user's own translations win over these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

TABLE: Mapping[str, Callable[..., Any]] = {}
"""`namespace::operator[.overload]` -> function; what this torch does not have is left out."""
