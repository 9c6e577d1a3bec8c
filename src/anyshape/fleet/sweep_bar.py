"""How far a sweep is: a bar with rate and time left in a terminal, a line for each result elsewhere."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from anyshape.fleet.result_lines import TaskRecord
from anyshape.sizes.spelling import without_controls


@contextlib.contextmanager
def shown_sweep(stream: TextIO, total: int, *, quiet: bool) -> Iterator[Callable[[TaskRecord], None]]:
    if quiet:
        yield lambda _: None
    elif stream.isatty() and os.environ.get("TERM") != "dumb":
        with _bar(stream, total) as show:
            yield show
    else:
        yield _plain_lines(stream, total)


def _line_about(record: TaskRecord) -> str:
    text = f"{record.name} [{record.column}] {record.outcome}, {record.seconds:.1f} s"
    return without_controls(" ".join(text.split()))


def _plain_lines(stream: TextIO, total: int) -> Callable[[TaskRecord], None]:
    begin, done = time.monotonic(), 0

    def show(record: TaskRecord) -> None:
        nonlocal done
        done += 1
        left = (time.monotonic() - begin) / done * (total - done)
        stream.write(f"{done} of {total}: {_line_about(record)}; about {_duration(left)} left\n")
        stream.flush()

    return show


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole / 3600:.1f} h"


@contextlib.contextmanager
def _bar(stream: TextIO, total: int) -> Iterator[Callable[[TaskRecord], None]]:
    """What has ended badly stays above the bar."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    rate = TextColumn("{task.fields[rate]}")
    columns = (BarColumn(), MofNCompleteColumn(), rate, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=Console(file=stream)) as progress:
        bar, begin, done = progress.add_task("", total=total, rate=""), time.monotonic(), 0

        def show(record: TaskRecord) -> None:
            nonlocal done
            done += 1
            if not record.is_good:
                progress.console.print(escape(_line_about(record)), highlight=False, soft_wrap=True)
            rate = f"{done / max(time.monotonic() - begin, 1e-3) * 60:.1f}/min"
            progress.update(bar, advance=1, rate=rate, description=escape(_line_about(record)[:60]))

        yield show
