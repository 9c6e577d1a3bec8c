"""How far a verb is: told in lines, in one line of a terminal that changes in its place, or as a bar in a notebook.

A verb tells its stages; the bench counts the sizes it has run, for whoever shows that.
"""

from __future__ import annotations

import contextlib
import html
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TextIO

Tell = Callable[[str], None]
Show = Callable[[str, str, float | None], None]
"""Shows a stage, its time, and its share that is done where that is known; nothing where the stage is empty."""
_SHOWN: ContextVar[ProgressLine | None] = ContextVar("the progress that is shown", default=None)
_REFRESHES = 0.2
"""Seconds: a second that passes is seen to pass, and a terminal has nothing to do."""


class ProgressLine:
    """One line that says the stage, the size, the time gone and the time to expect; `show` puts it somewhere."""

    def __init__(self, show: Show, clock: Callable[[], float] = time.monotonic) -> None:
        self._show, self._clock = show, clock
        self._start = clock()
        self._stage, self._count = "", (0, 0)
        self._stage_start = self._start
        self._lock, self._over = threading.RLock(), threading.Event()
        self._is_paused = False

    def tell(self, text: str) -> None:
        self._stage, self._count, self._stage_start = text, (0, 0), self._clock()
        self.draw()

    def count(self, done: int, total: int) -> None:
        """Not drawn at once: sizes may pass by the thousand."""
        self._count = done, total

    @property
    def time_text(self) -> str:
        """`, size 12 of 52, 4 s of about 9 s`."""
        done, total = self._count
        gone = self._clock() - self._start
        if not done:
            return f", {gone:.0f} s"
        left = (self._clock() - self._stage_start) / done * (total - done)
        return f", size {done} of {total}, {gone:.0f} s of about {gone + left:.0f} s"

    def draw(self) -> None:
        with self._lock:
            if self._stage and not self._is_paused:
                done, total = self._count
                self._show(self._stage, self.time_text, done / total if done else None)

    def clear(self) -> None:
        with self._lock:
            self._show("", "", None)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Inside, the line is away: somebody else writes."""
        with self._lock:
            self.clear()
            self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False
            self.draw()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Inside, the line is drawn again and again; afterwards nothing of it is left."""
        drawing = threading.Thread(target=self._redraw, name="anyshape's progress", daemon=True)
        drawing.start()
        token = _SHOWN.set(self)
        try:
            yield
        finally:
            _SHOWN.reset(token)
            self._over.set()
            drawing.join()
            self.clear()

    def _redraw(self) -> None:
        while not self._over.wait(_REFRESHES):
            self.draw()


# ---- who shows it


def count_size(done: int, total: int) -> None:
    """`done` of `total` sizes were run, as far as is known now."""
    if (line := _SHOWN.get()) is not None:
        line.count(done, total)


@contextlib.contextmanager
def without_line() -> Iterator[None]:
    """Inside, the terminal is somebody else's."""
    line = _SHOWN.get()
    with contextlib.nullcontext() if line is None else line.paused():
        yield


@contextlib.contextmanager
def shown_progress(stream: TextIO) -> Iterator[Tell]:
    """A bar in a notebook, one line in a terminal, and lines one below the other elsewhere."""
    show = _notebook_bar() or (_terminal_line(stream) if _is_terminal(stream) else None)
    if show is None:
        yield _plain_lines(stream)
        return
    line = ProgressLine(show)
    with line.running():
        yield line.tell


@contextlib.contextmanager
def told(progress: bool | Tell | None) -> Iterator[Tell]:
    """What `progress=` asks for: True shows it here, a function is told every stage, and nobody else anything."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda _: None
    else:
        with shown_progress(sys.stderr) as tell:
            yield tell


def _plain_lines(stream: TextIO) -> Tell:
    def tell(text: str) -> None:
        stream.write(f"{text}\n")
        stream.flush()

    return tell


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _terminal_line(stream: TextIO) -> Show:
    shown = ""

    def show(stage: str, time_text: str, _share: float | None) -> None:
        nonlocal shown
        text = _shortened_text(stage, _width(stream) - len(time_text) - 1) + time_text
        if text != shown:  # what has not changed is not drawn, so that nothing flickers
            shown = text
            stream.write(f"\r{text}\x1b[K")
            stream.flush()

    return show


def _shortened_text(text: str, room: int) -> str:
    """A line that wraps is two, of which one would stay."""
    return text if len(text) <= room else f"{text[: max(room - 3, 0)]}..."


def _width(stream: TextIO) -> int:
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(stream.fileno()).columns or 80
    return 80


def _notebook_bar() -> Show | None:
    """A bar below the cell, in a kernel of Jupyter's."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    import IPython.display

    display: Any = IPython.display
    handle = display.display(display.HTML(""), display_id=True)

    def show(stage: str, time_text: str, share: float | None) -> None:
        value = "" if share is None else f' value="{share:.3f}"'
        handle.update(display.HTML(f"<progress{value}></progress> {html.escape(stage)}{time_text}" if stage else ""))

    return show
