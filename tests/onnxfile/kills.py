"""A process that kills itself at one of its own moves of files: some call of these functions of `os` is its last."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable
from typing import Any


def kill_at(number: int, *names: str) -> None:
    """From here on, the calls of these functions are counted, all together, and that one is not done any more."""
    tempfile.gettempdir()  # which tries it out, and is no move of ours
    left = iter(range(number - 1))

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def move(*args: Any, **kwargs: Any) -> Any:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return move

    for name in names:
        setattr(os, name, counted(getattr(os, name)))
