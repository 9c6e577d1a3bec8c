"""How advice is spelled: as in Python, or as on the command line, by whoever asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_ON_THE_COMMAND_LINE: ContextVar[bool] = ContextVar("on the command line", default=False)


@contextlib.contextmanager
def on_the_command_line() -> Iterator[None]:
    """Inside, advice names options instead of arguments."""
    token = _ON_THE_COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _ON_THE_COMMAND_LINE.reset(token)


def spelled(python: str, command: str) -> str:
    """The one of two spellings that the reader can use."""
    return command if _ON_THE_COMMAND_LINE.get() else python


def give_calls() -> str:
    """What to do where made-up values are to blame."""
    return spelled("give make_inputs=", "define `inputs` beside the model, as a function of the sizes")
