"""Imports and conversions without searches for garbage.

Importing torch's exporter, a trace and its translation each make some hundred thousand objects, which live on. Every
search visits all of them again, and finds next to nothing; so do those that end a process.
"""

from __future__ import annotations

import contextlib
import gc
import sys
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


@contextlib.contextmanager
def imported_for_good() -> Iterator[None]:
    """Inside, the same; what is imported there is visited by no later search either, nor by those at the end.

    For a process that is ours, before it runs code of the user's: whoever has imported torch already keeps house alone.
    """
    is_ours = "torch" not in sys.modules
    with uncollected():
        yield
        if is_ours:
            gc.freeze()
