"""How far a sweep is: a bar with rate and time left in a terminal, a line for each result elsewhere."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from anyshape.fleet.result_lines import TaskRecord
from anyshape.sizes.spelling import without_controls


@contextlib.contextmanager
def shown_sweep(stream: TextIO, total: int, *, quiet: bool) -> Iterator[Callable[[TaskRecord], None]]:
    patient: Any = _PatientStream(stream)
    if quiet:
        yield lambda _: None
    elif stream.isatty() and os.environ.get("TERM") != "dumb":
        with _bar(patient, total) as show:
            yield show
    else:
        yield _plain_lines(patient, total)


class _PatientStream:
    """What cannot be shown, since a pipe has ended or a disk is full, does not end the sweep."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _line_about(record: TaskRecord) -> str:
    text = f"{record.name} [{record.column}] {record.outcome}, {record.seconds:.1f} s"
    return without_controls(" ".join(text.split()))


class _Pace:
    """How many of all have ended, how fast, and how long the others will take."""

    def __init__(self, total: int) -> None:
        self.done, self._total, self._begin = 0, total, time.monotonic()

    def count(self) -> None:
        self.done += 1

    @property
    def left(self) -> str:
        """Over all that has ended: entries differ too much for the last ones to tell anything."""
        return f"about {_duration(self._seconds / self.done * (self._total - self.done))} left"

    @property
    def rate(self) -> str:
        each = self.done / self._seconds
        return f"{each * 60:.1f}/min" if each * 60 >= 1 else f"{each * 3600:.1f}/h"

    @property
    def _seconds(self) -> float:
        return max(time.monotonic() - self._begin, 1e-3)


def _plain_lines(stream: TextIO, total: int) -> Callable[[TaskRecord], None]:
    pace = _Pace(total)

    def show(record: TaskRecord) -> None:
        pace.count()
        stream.write(f"{pace.done} of {total}: {_line_about(record)}; {pace.left}\n")
        stream.flush()

    return show


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole / 3600:.1f} h"


_WIDTH_OF_BAR, _WIDTH_OF_NUMBERS = 20, 52
"""Characters of a line: what is left of it is the last result's."""


@contextlib.contextmanager
def _bar(stream: TextIO, total: int) -> Iterator[Callable[[TaskRecord], None]]:
    """What has ended badly stays above the bar."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console, pace = Console(file=stream), _Pace(total)
    bar = [BarColumn(_WIDTH_OF_BAR)] if console.width >= _WIDTH_OF_BAR + _WIDTH_OF_NUMBERS else []
    columns = (*bar, MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        shown = progress.add_task("", total=total)

        def show(record: TaskRecord) -> None:
            pace.count()
            line = _line_about(record)
            if not record.is_good:
                progress.console.print(escape(line), highlight=False, soft_wrap=True)
            room = max(0, console.width - _WIDTH_OF_BAR - _WIDTH_OF_NUMBERS)
            progress.update(shown, advance=1, description=f"{pace.rate}, {pace.left}  {escape(line[:room])}")

        yield show
