"""Where something is to be written: why that cannot be, in one sentence, and folders that are made on the way.

Nothing here needs onnx, so that the command line can say it before anything is imported.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from anyshape.errors import DeclarationError, SavingError, reason_of_system


def check_destination(f: str | os.PathLike[str] | None) -> Path | None:
    """The path of the file to write, links followed, or one sentence about why not."""
    if f is None:
        return None
    if not isinstance(f, (str, os.PathLike)):
        raise DeclarationError(f"`f` is a {type(f).__name__}: pass a path, or None to write nothing")
    path = Path(f)
    refuse_foreign(os.fspath(f))
    if (is_folder := kind_at(path) == "a folder") or os.fspath(f).endswith(("/", os.sep)):
        ends = "is a folder" if is_folder else "ends like a folder"
        raise DeclarationError(f"`{os.fspath(f)}` {ends}: name a file in it, such as `{path / 'model.onnx'}`")
    real = path.resolve()
    refuse_no_text(real)
    _refuse_strangers(real, os.fspath(f))
    if path.is_symlink() and not real.parent.is_dir():
        raise DeclarationError(f"`{path}` is a link to `{real}`, whose folder does not exist")
    check_writable(real.parent if path.is_symlink() else path.parent)
    return real


# the version of the format, then any other field of a model: all writers begin with it, and no other kind of file does
_MODEL_START = re.compile(rb"\x08[\x01-\x7f][\x12\x1a\x22\x28\x32\x3a\x42]")


def _refuse_strangers(path: Path, shown: str) -> None:
    """Under any name but a model's, only a model is replaced: `-o state.pt` was a slip of the hand."""
    if path.suffix.lower() == ".onnx" or not path.exists():
        return
    try:
        with path.open("rb") as file:
            start = file.read(3)
    except OSError:
        start = b"?"  # what nobody may read is not known to be a model
    if start and not _MODEL_START.match(start):
        raise DeclarationError(f"`{shown}` is there and holds no ONNX model: name another file, or remove it first")


def refuse_foreign(text: str) -> None:
    """A backslash in a name is allowed elsewhere than on Windows, and never meant."""
    if os.sep == "/" and "\\" in text:
        raise DeclarationError(f"`{text}` is written as on Windows: `/` parts folders here")


def refuse_no_text(path: Path) -> None:
    """A name of a system may be any bytes; ONNX Runtime is told it as text."""
    if (shown := (text := str(path.absolute())).encode(errors="backslashreplace").decode()) != text:
        raise DeclarationError(f"`{shown}` has bytes that are no text: ONNX Runtime could not open it")


def kind_at(path: Path) -> str:
    """What stands at a path, a file or a folder or nothing; devices, pipes and sockets get one sentence."""
    try:
        kind = kind_of(path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as error:  # a name that is too long, a link to itself, or what no system takes
        raise SavingError(f"`{path}` cannot be written: {reason_of_system(error)}") from None
    if kind not in ("a file", "a folder"):
        raise DeclarationError(f"`{path}` is {kind}: only ordinary files are replaced")
    return kind


def kind_of(found: os.stat_result) -> str:
    kinds = {
        stat.S_IFREG: "a file", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link", stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    }  # fmt: skip
    return kinds.get(stat.S_IFMT(found.st_mode), "no file")


def check_writable(folder: Path) -> None:
    """Raise where nothing can be written to a folder, or where it could not be made."""
    refuse_no_text(folder)
    standing = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    shown = folder if standing == folder.absolute() else standing
    if not standing.is_dir():
        raise DeclarationError(f"`{shown}` is a file, so that there can be no folder `{folder}`")
    try:
        # asked by doing: the super-user may write everywhere, and cannot in /proc
        with tempfile.TemporaryFile(dir=standing):
            pass
    except FileNotFoundError:
        raise DeclarationError(f"the folder `{shown}` is the system's own and takes no files") from None
    except OSError as error:
        raise SavingError(f"the folder `{shown}` cannot be written to: {reason_of_system(error)}") from None


def refuse_lasting(folder: Path) -> None:
    """Raise where a folder cannot be exchanged for another one."""
    if not folder.exists():
        return
    if os.path.ismount(folder):
        raise DeclarationError(f"`{folder}` is where a file system is mounted: name a folder in it")
    if Path.cwd().is_relative_to(folder.resolve()):
        raise DeclarationError(f"`{folder}` is the current folder, or around it: name another one, or one in it")


def replace_text(path: Path, text: str | bytes) -> None:
    """Write a file, folders on the way included: the old one or the new one stands there, never half of it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace"))
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise SavingError(f"`{path}` cannot be written: {reason_of_system(error)}") from None


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
