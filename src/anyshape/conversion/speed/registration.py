"""Shapes of our own operators, registered without torch's search for the caller.

torch goes through all modules of the process to learn which of them registers, several milliseconds each time.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import torch

from anyshape.conversion.speed.switch import are_on
from anyshape.torchkit.patches import patched


def define(name: str, schema: str, shapes: Callable[..., Any]) -> None:
    """A new operator, with what it gives for tensors that have shapes alone."""
    torch.library.define(name, schema)
    register_fake(name, shapes)


def register_fake(name: str, function: Callable[..., Any], lib: torch.library.Library | None = None) -> None:
    """What an operator gives for tensors that have shapes alone."""
    unsearched = patched(inspect, "getmodule", lambda *_asked: None) if are_on() else contextlib.nullcontext()
    with unsearched:
        torch.library.register_fake(name, function, lib=lib)
