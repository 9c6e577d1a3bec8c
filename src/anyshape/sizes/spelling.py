"""How advice is spelled, as in Python or as on the command line, by whoever asked; strangers' texts in a terminal."""

from __future__ import annotations

import contextlib
import re
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


_OPTIONS = {"opset_version": "opset", "dims": "dim", "sizes": "size", "constants": "constant"}
"""Arguments whose options are called otherwise."""


def argument(name: str) -> str:
    """An argument by the name that its reader has written."""
    return spelled(name, f"--{_OPTIONS.get(name, name.replace('_', '-'))}")


def give_calls() -> str:
    """What to do where made-up values are to blame."""
    return spelled("give make_inputs=", "define `inputs` beside the model, as a function of the sizes")


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves a terminal's cursor, names its window or turns its text round; lines and tabs are what they seem."""


def without_controls(text: str) -> str:
    """Text that may hold names out of a stranger's file: what would control a terminal is shown as its number."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)
