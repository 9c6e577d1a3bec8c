"""The debug report: what a stranger needs to know of a run to look into it, as a text that can be shown to anybody.

Versions, the command, the declaration, the ways that were tried and why each ended, notes and findings. No weights, no
source beyond the lines that findings show, no absolute path, no name of a host or of a user.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from anyshape.errors import AnyshapeError, DeclarationError
from anyshape.onnxfile.destination import check_writable, refuse_foreign, replace_text
from anyshape.sizes.spelling import without_controls

if TYPE_CHECKING:
    from anyshape.cli.endings import Ending

_TITLE = "anyshape debug report"
_PLACE = "anyshape.debug_report"
"""Where a command's context keeps the path."""
_PACKAGES = ("anyshape", "torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime", "onnxruntime-gpu", "numpy", "sympy")


# ---- what is asked for


def keep_place(context: click.Context, _parameter: click.Parameter, text: str | None) -> None:
    """Remember where a command's report goes, once it can go there."""
    if text is None:
        return
    try:
        context.meta[_PLACE] = _checked_place(text)
    except AnyshapeError as error:
        raise click.BadParameter(str(error)) from None


def _checked_place(text: str) -> Path:
    refuse_foreign(text)
    path = Path(text)
    if path.is_dir():
        raise DeclarationError(f"`{text}` is a folder: name a file in it")
    if path.exists() and not _is_report(path):
        raise DeclarationError(f"`{text}` is there and is no debug report: name another file")
    check_writable(path.parent)
    return path.absolute()


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_TITLE)) == _TITLE.encode()


def write_report(ending: Ending) -> Path | None:
    """Write the report of a command that asked for one; where it stands."""
    context = click.get_current_context(silent=True)
    place: Path | None = None if context is None else context.meta.get(_PLACE)
    if context is None or place is None:
        return None
    arguments = context.find_root().obj or ()
    replace_text(place, "\n".join(_lines(ending, arguments)) + "\n")
    return place


# ---- the text


def versions_text() -> str:
    """What stands in every report."""
    found = [f"Python {platform.python_version()} on {platform.system()} {platform.release()} {platform.machine()}"]
    for name in _PACKAGES:
        version = _version_of(name)
        if version is not None or name != "onnxruntime-gpu":
            found.append(f"{name} {version or 'is not installed'}")
    return "\n".join([_TITLE, *(f"  {one}" for one in found)])


def _version_of(name: str) -> str | None:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    return None


def _lines(ending: Ending, arguments: Sequence[str]) -> Iterator[str]:
    yield versions_text()
    clean = _Cleaner()
    yield from _titled_part("command", [f"anyshape {shlex.join(arguments)}", f"ended with code {ending.code}"], clean)
    # a checkpoint has a result for each of its files
    for document in (ending.document, *ending.document.get("results", ())):
        yield from _titled_part("declaration", _declaration(document), clean)
        yield from _titled_part("ways tried", map(_way_in_words, document.get("attempts", ())), clean)
        yield from _titled_part("assumptions", map(_assumption, document.get("assumptions", ())), clean)
    yield from _titled_part("result", ending.text.splitlines(), clean)
    if ending.error is not None and not ending.is_result:
        yield from _titled_part("raised at", _frames(ending.error), clean)


def _titled_part(title: str, lines: Any, clean: _Cleaner) -> Iterator[str]:
    shown = [f"  {clean(line)}".rstrip() for line in lines]
    if shown:
        yield from ("", title, *shown)


def _declaration(document: Mapping[str, Any]) -> Iterator[str]:
    for port in document.get("inputs", ()):
        axes = "..." if port["axes"] is None else ", ".join("?" if one is None else str(one) for one in port["axes"])
        yield f"{port['name']}: {port['dtype']}[{axes}]"
    dims = document.get("dims")
    if isinstance(dims, Mapping):
        yield from (f"{dim} {sizes}" for dim, sizes in dims.items())
    yield from map(str, document.get("where", ()))


def _way_in_words(attempt: Mapping[str, Any]) -> str:
    reason = f": {attempt['reason']}" if attempt["reason"] else ""
    return f"{attempt['strategy']} {attempt['outcome']} after {attempt['seconds']:.1f} s{reason}"


def _assumption(row: Any) -> str:
    values = row.values() if isinstance(row, Mapping) else row
    return ", ".join(str(one) for one in values if one not in (None, "", [], {}))


def _frames(error: BaseException) -> Iterator[str]:
    """Where it was raised, without a line of source."""
    for frame in traceback.extract_tb(error.__traceback__):
        yield f"{frame.filename}:{frame.lineno} in {frame.name}"
    yield type(error).__name__


# ---- what nobody else should read


class _Cleaner:
    """Takes folders of this machine, its name and its user's out of a line."""

    def __init__(self) -> None:
        folders = {
            os.getcwd(): ".",  # noqa: PTH109  as it is spelled there
            str(Path.cwd()): ".",
            str(Path.home()): "~",
            tempfile.gettempdir(): "<temporary>",
            **{one: "<packages>" for one in sys.path if one.endswith("-packages")},
            str(Path(__file__).parents[1]): "anyshape",
            sys.prefix: "<python>",
            sys.base_prefix: "<python>",
        }
        known = sorted((one for one in folders if len(one) > 1), key=len, reverse=True)
        self._folders = re.compile("|".join(f"{re.escape(one)}(?=[/\\\\]|\\b|$)" for one in known))
        self._instead = folders
        names = [name for name in (_user(), platform.node(), platform.node().partition(".")[0]) if len(name) > 2]
        self._names = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in names) or r"(?!)")

    def __call__(self, line: str) -> str:
        line = self._folders.sub(lambda found: self._instead[found[0]], without_controls(line))
        return self._names.sub("<name>", _ABSOLUTE.sub(_last_part, line))


_ABSOLUTE = re.compile(r"(?<![\w/.~>\\-])(?:/(?!/)|[A-Za-z]:[\\/])[^\s'\"`:,;()<>|]+")


def _last_part(found: re.Match[str]) -> str:
    return "<folder>/" + re.split(r"[\\/]", found[0].rstrip("/\\"))[-1]


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user in this system
        return ""
