"""The silence of one thread: what it prints, warns of and logs goes nowhere, while all others are heard as before.

Streams, warnings and loggers belong to the whole process. So nothing is taken away from them: what is put in their way
asks who speaks, and lets everybody pass but the silent. Threads that a model starts by itself are heard.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


class _Silent(threading.local):
    """Whether this thread is."""

    is_on = False


_THIS_THREAD = _Silent()


@contextlib.contextmanager
def silent_thread(loggers: Sequence[str]) -> Iterator[None]:
    """Inside, this thread prints and warns to nobody, nor do these loggers speak for it."""
    with contextlib.ExitStack() as stack:
        nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
        for name in ("stdout", "stderr"):
            stack.enter_context(_own_stream(name, nowhere))
        stack.enter_context(_deaf_to_warnings())
        stack.enter_context(_deaf_to_loggers(tuple(loggers)))
        stack.enter_context(_silence_set(is_on=True))
        yield


def heard_thread() -> contextlib.AbstractContextManager[None]:
    """Inside, this thread is heard again: for what is not torch's and not the model's."""
    return _silence_set(is_on=False)


@contextlib.contextmanager
def _silence_set(*, is_on: bool) -> Iterator[None]:
    before = _THIS_THREAD.is_on
    _THIS_THREAD.is_on = is_on
    try:
        yield
    finally:
        _THIS_THREAD.is_on = before


# ---- what is printed


class _ThreadsOwnStream:
    """A stream for everybody, and another one for the silent.

    Whoever keeps it longer than the silence lasts has the stream of before.
    """

    def __init__(self, stream: Any, nowhere: Any) -> None:
        self._streams = (stream, nowhere)

    def __getattr__(self, name: str) -> Any:
        stream, nowhere = self._streams
        return getattr(nowhere if _THIS_THREAD.is_on and not nowhere.closed else stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams[0])


@contextlib.contextmanager
def _own_stream(name: str, nowhere: Any) -> Iterator[None]:
    before = getattr(sys, name)
    own = _ThreadsOwnStream(before, nowhere)
    setattr(sys, name, own)
    try:
        yield
    finally:
        if getattr(sys, name) is own:  # else another thread has put its own there, and takes it away itself
            setattr(sys, name, before)


# ---- warnings and logs


class _FromSilentThread:
    """Stands where a filter has the pattern of a message: it fits whatever a silent thread warns of."""

    def match(self, _text: str) -> bool:
        return _THIS_THREAD.is_on


@contextlib.contextmanager
def _deaf_to_warnings() -> Iterator[None]:
    # not `catch_warnings`, which takes filters from all threads, and afterwards those away that others have set
    entry: Any = ("ignore", _FromSilentThread(), Warning, None, 0)
    warnings.filters.insert(0, entry)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            warnings.filters.remove(entry)  # type: ignore[attr-defined]


@contextlib.contextmanager
def _deaf_to_loggers(names: tuple[str, ...]) -> Iterator[None]:
    # at the handlers: a filter of a logger does not hear its children, and a level is everybody's
    def passes(record: logging.LogRecord) -> bool:
        return not (_THIS_THREAD.is_on and record.name.startswith(names))

    loggers = [one for one in list(logging.root.manager.loggerDict.values()) if isinstance(one, logging.Logger)]
    handlers = {handler for one in (logging.root, *loggers) for handler in one.handlers}
    handlers |= {logging.lastResort} if logging.lastResort is not None else set()
    for handler in handlers:
        handler.addFilter(passes)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(passes)
