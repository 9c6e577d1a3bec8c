"""The plain options of `export` and `check`: a wrong type or a senseless number is one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from anyshape.errors import DeclarationError


def check_options(
    *,
    atol: Any = None,
    rtol: Any = None,
    budget: Any = None,
    seed: Any = 0,
    make_inputs: Any = None,
    progress: Any = None,
    target: Any = None,
    metadata: Any = None,
    unchecked: Any = (),
    providers: Any = None,
    repair: Any = None,
) -> None:
    """Raise where an option is not what it should be."""
    for name, value in (("atol", atol), ("rtol", rtol), ("budget", budget)):
        if value is not None and not _is_positive(value):
            raise DeclarationError(f"{name} is {value!r}: give a number that is not negative")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise DeclarationError(f"seed is {seed!r}: give a whole number")
    for name, value in (("make_inputs", make_inputs), ("progress", progress)):
        if value is not None and not callable(value):
            raise DeclarationError(f"{name} is {value!r}: give a function")
    if target is not None and not isinstance(target, str):
        raise DeclarationError(f"target is {target!r}: write `onnxruntime==1.18`")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise DeclarationError(f"metadata is {metadata!r}: give a dict of text")
    if repair not in (None, "edits"):
        raise DeclarationError(f'repair is {repair!r}: give "edits", or leave it out')
    _check_lists(unchecked=unchecked, providers=providers)


def _check_lists(**lists: Any) -> None:
    for name, value in lists.items():
        if value is not None and (isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset))):
            raise DeclarationError(f"{name} is {value!r}: give a list of text")


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
