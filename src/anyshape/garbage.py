"""Imports and conversions without searches for garbage.

Importing torch's exporter, a trace and its translation each make some hundred thousand objects, which live on. Every
search visits all of them again, and finds next to nothing.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Inside, Python's collector rests, unless the caller has switched it off altogether."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
