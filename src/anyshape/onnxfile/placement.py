"""How files get to their place: only ordinary files are replaced, and the model last, so that no moment shows a half.

New weights have a name of their own and go first. The model that refers to them is replaced in one step. Then the
weights of the old model go, if it alone used them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import onnx

from anyshape.errors import SavingError, reason_of_system
from anyshape.onnxfile.destination import kind_of
from anyshape.onnxfile.untrusted import stored_tensors
from anyshape.sizes import budgets

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


# ---- names of weights


def data_name(model: str, digest: str) -> str:
    """`model.onnx` -> `model.onnx.0123456789abcdef.data`."""
    return f"{model}.{digest}.data"


def digest_of(path: Path) -> str:
    """What a file holds, in 16 digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


# ---- the move


def place_model(model: Path, data: Path | None, destination: Path) -> list[str]:
    """Put a model and its weights in their place; the old ones stay if anything goes wrong. What is to be said."""
    with alone_in(destination.parent) as is_alone, uninterrupted():
        old = ordinary_file(destination)
        outdated = own_weights(destination)
        placed = None if data is None else destination.with_name(data.name)
        was_there = placed is not None and ordinary_file(placed) is not None
        if placed is not None and was_there and placed.name not in outdated and not _is_told_by_name(placed):
            raise SavingError(f"`{placed}` is somebody else's file, and has the name of the model's weights")
        for new in filter(None, (model, data)):
            take_over(old, destination, new)
        try:
            if data is not None and placed is not None:
                data.replace(placed)
            model.replace(destination)
        except BaseException:
            if not model.exists():  # all was done when it came
                _remove_outdated(destination, outdated)
            elif placed is not None and not was_there:
                placed.unlink(missing_ok=True)
            raise
        outdated |= _stray_weights(destination) if is_alone else set()
        return _remove_outdated(destination, outdated)


def ordinary_file(path: Path) -> os.stat_result | None:
    """What stands at a path that is to be written, None for nothing; a sentence for what is no ordinary file."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise SavingError(f"`{path}` is {kind_of(found)}: only ordinary files are replaced")
    return found


def take_over(old: os.stat_result | None, path: Path, new: Path) -> None:
    """Give what replaces a path its owner, its mode and its attributes, as far as the system lets this user."""
    if old is None:
        return  # as the user's mask has it
    made = new.stat()
    if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid):
        for owner in ((old.st_uid, -1), (-1, old.st_gid)):
            with contextlib.suppress(OSError):
                os.chown(new, *owner)
    new.chmod(stat.S_IMODE(old.st_mode))
    for name in os.listxattr(path) if hasattr(os, "listxattr") else ():
        with contextlib.suppress(OSError):
            os.setxattr(new, name, os.getxattr(path, name))


# ---- weights that nobody uses any more


def own_weights(model: Path) -> set[str]:
    """The ordinary files beside a model that it lists, and that are named after it."""
    return names & listed_data(model) if (names := _named_after(model)) else set()


def _stray_weights(model: Path) -> set[str]:
    """Those that it does not list, since a process was killed, and whose names tell what they hold."""
    return {name for name in _named_after(model) - listed_data(model) if _is_told_by_name(model.with_name(name))}


def _named_after(model: Path) -> set[str]:
    beside = re.compile(re.escape(model.name) + r"[._](?:[0-9a-f]{16}\.)?data")
    if not model.parent.is_dir():
        return set()
    entries = [entry for entry in _entries(model.parent) if beside.fullmatch(entry.name)]
    return {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return list(found)


def _is_told_by_name(path: Path) -> bool:
    """Whether a file of weights holds what its name says; no one else gives such names."""
    found = re.search(r"\.([0-9a-f]{16})\.data$", path.name)
    return found is not None and digest_of(path) == found[1]


def listed_data(model: Path) -> set[str]:
    """The files that a model lists for its weights; none where there is no model that has any."""
    try:
        if model.stat().st_size > budgets.LARGEST_GRAPH_WITHOUT_WEIGHTS:
            return set()
        proto = onnx.load(model, load_external_data=False)
    except Exception:  # noqa: BLE001  whatever the parser raises, nothing is listed
        return set()
    tensors = stored_tensors(proto.graph, *proto.functions)
    return {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}


def _remove_outdated(destination: Path, names: set[str]) -> list[str]:
    """Remove files of weights that no model in the folder mentions; what is to be said of the others."""
    told = []
    for name in sorted(names - listed_data(destination)):
        if user := other_user(destination, name):
            told.append(f"`{name}` stays: `{user}` uses it, too")
        else:
            with contextlib.suppress(OSError):
                destination.with_name(name).unlink()
    return told


def other_user(destination: Path, name: str) -> str | None:
    """Another model in the folder that mentions a file."""
    for entry in _entries(destination.parent):
        is_model = ".onnx" in entry.name and not entry.name.endswith("data") and entry.name != destination.name
        with contextlib.suppress(OSError):  # a link to itself, or what nobody may read
            is_read = is_model and entry.is_file() and entry.stat().st_size <= budgets.LARGEST_GRAPH_WITHOUT_WEIGHTS
            if is_read and name.encode() in Path(entry.path).read_bytes():
                return entry.name
    return None


# ---- the system


def require_room(folder: Path, needed: int) -> None:
    """Raise where a file of so many bytes finds no room in a folder, or may not be as long."""
    free, longest = shutil.disk_usage(folder).free, _longest_file()
    if needed > free:
        raise SavingError(f"the weights need {in_units(needed)}, and {in_units(free)} are free in `{folder.parent}`")
    if longest is not None and needed > longest:
        told = f"a file may have {in_units(longest)} at most here (`ulimit -f`)"
        raise SavingError(f"the weights need {in_units(needed)}, and {told}")


def _longest_file() -> int | None:
    with contextlib.suppress(ImportError):  # Windows
        import resource

        longest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        return None if longest == resource.RLIM_INFINITY else longest
    return None


def in_units(count: int) -> str:
    """`1.5 GB`; small ones in bytes, so that nothing is shown as 0."""
    for size, unit in ((10**9, "GB"), (10**6, "MB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:,} bytes"


@contextlib.contextmanager
def told_in_a_sentence(path: Path | None) -> Iterator[None]:
    """Inside, what the system refuses is told as such, with the path that was to be written."""
    try:
        yield
    except SavingError:
        raise
    except OSError as error:
        what = "a temporary file" if path is None else f"`{path}`"
        # numpy says how much was left out, and not why
        reason = "there is no room for all of it" if error.errno is None else reason_of_system(error)
        raise SavingError(f"{what} cannot be written: {reason}") from error


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[bool]:
    """Inside, no other process of ours moves files in this folder; whether that is sure."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a system without such handles, or a folder that is gone, which the move will tell
        yield False
        return
    try:
        yield fcntl is not None and _is_locked(handle)
    finally:
        os.close(handle)  # which gives the lock back


def _is_locked(handle: int) -> bool:
    end = time.monotonic() + budgets.SECONDS_FOR_A_FOLDER
    while time.monotonic() < end:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:  # a file system without locks
            return False
        else:
            return True
    return False


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Inside, Ctrl-C and SIGTERM wait until all is done; only the main thread is ever interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)

    kept: dict[int, Any] = {}
    for one in (signal.SIGINT, signal.SIGTERM):
        if callable(signal.getsignal(one)):  # what ends the process without a word of Python's does so
            kept[one] = signal.signal(one, note)
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        for number in arrived:
            signal.raise_signal(number)
