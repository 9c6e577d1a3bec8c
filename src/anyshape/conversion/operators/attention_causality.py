"""The place where torch's transformers look at a mask's values to see whether it is causal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch.nn.modules import transformer

from anyshape.torchkit.patches import patched

_NAME = "_detect_is_causal_mask"


@contextlib.contextmanager
def unseen_masks(acted: Callable[[], None]) -> Iterator[None]:
    """Inside, a mask of unknown kind is never called causal; what the caller says is believed as before."""
    original = getattr(transformer, _NAME, None)
    if original is None:
        yield
        return

    def detect(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:  # noqa: ARG001  torch's
        if is_causal is not None:
            return is_causal
        if mask is not None:
            acted()
        return False

    with patched(transformer, _NAME, detect):
        yield
