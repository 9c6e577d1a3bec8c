"""Shortcuts through torch and onnxscript, each only faster than their own way, behind one switch.

With `ANYSHAPE_SHORTCUTS=0` in the environment both go their own way. A shortcut gives what the long way gives; who
meets a wrong file or a crash can tell by the switch whose fault it is.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec

VARIABLE = "ANYSHAPE_SHORTCUTS"
_P = ParamSpec("_P")


def are_on() -> bool:
    """Asked at every export, so that one process can compare both."""
    return os.environ.get(VARIABLE, "") != "0"


def shortcut(enter: Callable[_P, AbstractContextManager[None]]) -> Callable[_P, AbstractContextManager[None]]:
    """A context manager that does nothing where shortcuts are off."""

    @functools.wraps(enter)
    def switched(*args: _P.args, **kwargs: _P.kwargs) -> AbstractContextManager[None]:
        return enter(*args, **kwargs) if are_on() else contextlib.nullcontext()

    return switched
