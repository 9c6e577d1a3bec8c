"""Streams: stdout for the result alone, stderr for progress and for whatever a model, torch or C code prints."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from anyshape.cli.debug_report import write_report
from anyshape.cli.endings import DONE, TERMINATED, Ending, Terminated, done, ending_of, for_debug
from anyshape.errors import AnyshapeError
from anyshape.results.progress import shown_progress
from anyshape.sizes.spelling import on_the_command_line, without_controls

Tell = Callable[[str], None]
_Result = TypeVar("_Result")


def perform(
    work: Callable[[Tell], _Result],
    *,
    conclude: Callable[[_Result], Ending] = done,
    refusal: int,
    as_json: bool,
    debug: bool,
    quiet: bool,
) -> int:
    """Run a command's work with stdout kept clean, print how it ended, and return the exit code.

    `work` does what the command is for and tells how far it is; `conclude` makes an ending of it and may ask questions.
    """
    try:
        with _results_apart(), _terminable(), on_the_command_line():
            with _progress(quiet=quiet) as tell:
                result = work(tell)
            ending = conclude(result)
    except click.ClickException:
        raise
    except BaseException as error:  # noqa: BLE001  every ending has its code and its sentence
        ending = ending_of(error, refusal=refusal)
    _print_ending(ending, as_json=as_json)
    _write_report(ending)
    if debug:
        for text in for_debug(ending):
            click.echo(text, err=True)
    return ending.code


def _write_report(ending: Ending) -> None:
    """Where one was asked for; what was done stays done where it cannot be written."""
    try:
        place = write_report(ending)
    except AnyshapeError as error:
        click.echo(f"error: no debug report: {without_controls(str(error))}", err=True)
    else:
        if place is not None:
            click.echo(f"debug report: {without_controls(place.name)}", err=True)


def _print_ending(ending: Ending, *, as_json: bool) -> None:
    if as_json:
        click.echo(as_text(ending.document))
    if not ending.is_result:
        click.echo(f"error: {without_controls(ending.text)}", err=True)
    elif as_json and ending.code != DONE:
        click.echo(without_controls(ending.headline), err=True)
    elif not as_json:
        _print_result(without_controls(ending.text))


def as_text(document: dict[str, Any]) -> str:
    """JSON that any pipe takes: ASCII alone."""
    return json.dumps(document, indent=2, default=str)


# ---- stdout


@contextlib.contextmanager
def _results_apart() -> Iterator[None]:
    """Inside, everything that is printed goes to stderr, also what C code writes past Python."""
    sys.stdout.flush()
    kept: int | None = None
    with contextlib.suppress(OSError):  # a closed stdout has nothing to keep apart
        kept = os.dup(1)
        os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            flush_c()
            os.dup2(kept, 1)
            os.close(kept)


def flush_c() -> None:
    """C's own buffer would be written at exit otherwise, after the result."""
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)


def _print_result(text: str) -> None:
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console
    from rich.text import Text

    shown = Text(text)
    for pattern, style in _STYLES:
        shown.highlight_regex(pattern, style)
    Console(file=sys.stdout, highlight=False, soft_wrap=True).print(shown, markup=False)


_STYLES = (
    (r"^(checked|narrowed)( in \w+)?:", "bold green"),
    (r"^unchecked:", "bold yellow"),
    (r"^refused:", "bold red"),
    (r"^no findings$", "bold green"),
    (r"(?m)(^|(?<=:\d: )|(?<=:\d\d: ))error\[[\w-]+\]", "bold red"),
    (r"(?m)(^|(?<=:\d: )|(?<=:\d\d: ))warning\[[\w-]+\]", "bold yellow"),
    (r"(?m)^ *\d* \|", "blue"),
    (r"(?m)^  baked in", "yellow"),
)


# ---- stderr


@contextlib.contextmanager
def _progress(*, quiet: bool) -> Iterator[Tell]:
    """One line in a terminal, plain lines elsewhere, nothing where nothing is wanted."""
    if quiet:
        yield lambda _: None
        return
    # stderr as it is now: while the model runs, what it prints goes elsewhere
    with shown_progress(sys.stderr) as tell:
        yield tell


# ---- signals


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Inside, SIGTERM unwinds like an exception; only the main thread may ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise_terminated(_number: int, _frame: Any) -> None:
    raise Terminated(TERMINATED)
