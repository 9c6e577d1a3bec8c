"""Imports and conversions without searches for garbage, and memory that is given back.

Importing torch's exporter, a trace and its translation each make some hundred thousand objects, which live on. Every
search visits all of them again, and finds next to nothing; so do those that end a process.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import sys
from collections.abc import Callable, Iterator


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


def give_memory_back() -> None:
    """To the system, of what was freed: the C library keeps pieces below 32 MB for the next who asks, and few ask."""
    _trim()(0)


@functools.cache
def _trim() -> Callable[[int], object]:
    """The C library's own call; none but glibc has one."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda _: None
