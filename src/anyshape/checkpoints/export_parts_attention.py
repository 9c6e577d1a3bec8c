"""Attention of transformers without a look at the values of masks: one way for every size and every mask.

In eager, transformers leaves a mask out where it masks nothing and lets the kernel be causal by itself. The results
are the same, but what is decided on values and sizes cannot be traced. Here the mask is always applied. Only the maker
of masks is another one: models ask for the name of their attention, too, and must find the one that they know.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from transformers import masking_utils

_MAKERS: Any = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS
_NEVER = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}


@contextlib.contextmanager
def every_mask_applied() -> Iterator[None]:
    """Inside, models of transformers apply their masks as they are, also those that mask nothing."""
    own = _MAKERS["sdpa"]

    def every_mask(*args: Any, **kwargs: Any) -> Any:
        return own(*args, **{**kwargs, **_NEVER})

    _MAKERS["sdpa"] = every_mask
    try:
        yield
    finally:
        _MAKERS["sdpa"] = own
