"""Where something is to be written: why that cannot be, in one sentence, and folders that are made on the way.

Nothing here needs onnx, so that the command line can say it before anything is imported.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from anyshape.errors import DeclarationError


def check_destination(f: str | os.PathLike[str] | None) -> Path | None:
    """The path of the file to write, or one sentence about why not."""
    if f is None:
        return None
    if not isinstance(f, (str, os.PathLike)):
        raise DeclarationError(f"`f` is a {type(f).__name__}: pass a path, or None to write nothing")
    path = Path(f)
    refuse_foreign(os.fspath(f))
    if (is_folder := _is_folder(path)) or os.fspath(f).endswith(("/", os.sep)):
        ends = "is a folder" if is_folder else "ends like a folder"
        raise DeclarationError(f"`{os.fspath(f)}` {ends}: name a file in it, such as `{path / 'model.onnx'}`")
    check_writable(path.parent)
    return path.resolve()


def refuse_foreign(text: str) -> None:
    """A backslash in a name is allowed elsewhere than on Windows, and never meant."""
    if os.sep == "/" and "\\" in text:
        raise DeclarationError(f"`{text}` is written as on Windows: `/` parts folders here")


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:  # a name that is too long, or that no system takes
        raise DeclarationError(f"`{path}` cannot be written: {_reason(error)}") from None


def check_writable(folder: Path) -> None:
    """Raise where nothing can be written to a folder, or where it could not be made."""
    standing = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    shown = folder if standing == folder.absolute() else standing
    if not standing.is_dir():
        raise DeclarationError(f"`{shown}` is a file, so that there can be no folder `{folder}`")
    try:
        # asked by doing: the super-user may write everywhere, and cannot in /proc
        with tempfile.TemporaryFile(dir=standing):
            pass
    except OSError as error:
        raise DeclarationError(f"the folder `{shown}` cannot be written to: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


@contextlib.contextmanager
def folder_made(folder: Path | None) -> Iterator[None]:
    """Inside, the folder is there; those that were made for it are gone afterwards, unless something is in them."""
    missing = [] if folder is None else [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        for one in reversed(missing):
            one.mkdir(exist_ok=True)  # somebody else may have made it since
        yield
    finally:
        for one in missing:
            with contextlib.suppress(OSError):
                one.rmdir()
