"""A call as users write it in one value: a tuple of arguments, a dict of keywords, or both by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def read_call(given: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """Arguments and keywords; all but `{"args": ..., "kwargs": ...}` is taken as arguments."""
    if not isinstance(given, dict) or not given or not set(given) <= {"args", "kwargs"}:
        return given, None
    args = given.get("args", ())
    return tuple(args) if isinstance(args, list) else args, given.get("kwargs")
