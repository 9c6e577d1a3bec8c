"""A conversion without searches for garbage.

A trace and its translation make some hundred thousand objects, all of which live until the end. Every search visits
them again, with those of every module that was imported, and finds next to nothing.
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
