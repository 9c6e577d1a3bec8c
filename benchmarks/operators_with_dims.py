"""The operators of `operators.py` once more, with dims that are found: a collection for `anyshape sweep`."""

from __future__ import annotations

from operators import models_with_dims as models

__all__ = ["columns", "models"]

columns = {"anyshape, dims found": {"by": "anyshape"}}
