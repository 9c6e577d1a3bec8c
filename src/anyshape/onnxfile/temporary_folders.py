"""Temporary folders whose names say whose they are, so that those of processes that were killed are found and removed.

A process is known by its host, the boot of that, the space of its number, the number and when it began: a number is
given again, and a shared disk has folders of other hosts, about whose processes nothing can be known here.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anyshape.sizes import budgets

_NAME = re.compile(r"\.anyshape-(?P<host>\w+)-(?P<boot>\w+)-(?P<space>\d+)-(?P<number>\d+)-(?P<begin>\d+)-\w+")


@contextlib.contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder of this process, in `parent` or where the system has its own; gone afterwards whatever happens."""
    owner = _this_process()
    signed = f".anyshape-{owner.host}-{owner.boot}-{owner.space}-{owner.number}-{owner.begin}-{secrets.token_hex(4)}"
    folder = _home(parent) / signed
    try:  # from before it is made: an interruption right after that finds it, too
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def left_folders(parent: Path | None = None) -> list[Path]:
    """The folders in `parent` of this user's processes that were killed."""
    return [Path(entry.path) for entry in _entries(_home(parent)) if entry.name.startswith(".any") and _is_left(entry)]


MADE, ASIDE, INTENDED = "new", "old", "destination"
"""In a folder: what is to take another one's place, that one while it is moved aside, and the name of that place."""


def remove_left(parent: Path | None = None) -> tuple[str, ...]:
    """Remove these folders; what is to be said about it. What was moved aside and not yet replaced is put back."""
    removed = []
    for folder in left_folders(parent):
        if (folder / MADE).exists() and (folder / ASIDE).exists():
            place = folder.with_name(_text_of(str(folder / INTENDED)))
            if place.exists():
                continue  # nobody knows whose that is, and what is aside has no other place
            (folder / ASIDE).rename(place)
            removed.append(f"put `{place}` back, which a process that was killed had moved aside")
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            removed.append(f"removed `{folder}`, which a process that was killed had left")
    return tuple(removed)


def _home(parent: Path | None) -> Path:
    return Path(tempfile.gettempdir()) if parent is None else parent


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:  # a folder that may be written to need not be readable
        return []


# ---- whose they are


@dataclass(frozen=True)
class _Process:
    """A process, as the name of its folder tells it."""

    host: str
    boot: str
    space: str
    number: str
    begin: str

    @property
    def is_here(self) -> bool:
        return self.host == _this_process().host

    def is_dead(self, age: float) -> bool:
        """Whether it is known to have ended; `age` is that of its folder in seconds."""
        here = _this_process()
        if self.boot != here.boot:
            return age > budgets.SECONDS_BEFORE_ANOTHER_BOOT
        return self.space == here.space and _begin_of(self.number) != self.begin


def _is_left(entry: os.DirEntry[str]) -> bool:
    found = _NAME.fullmatch(entry.name)
    if found is None or not (owner := _Process(**found.groupdict())).is_here:
        return False
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:  # gone meanwhile
        return False
    is_ours = stat.S_ISDIR(state.st_mode) and state.st_uid == getattr(os, "geteuid", lambda: 0)()
    return is_ours and owner.is_dead(time.time() - state.st_mtime)


def _this_process() -> _Process:
    number = str(os.getpid())  # each time: a process that was forked has another one
    return _Process(*_machine(), number, _begin_of(number) or "0")


@functools.cache
def _machine() -> tuple[str, str, str]:
    host = _short(platform.node() + _text_of("/etc/machine-id"))
    space = _inode_of("/proc/self/ns/pid")
    return host, _short(_text_of("/proc/sys/kernel/random/boot_id")), str(space)


def _begin_of(number: str) -> str | None:
    """When the process with this number began, in ticks since the boot; None where there is none, or only its ashes."""
    if not _text_of("/proc/self/stat"):
        return "0" if _is_running(int(number)) else None
    # its own name stands in brackets, and may have any in it
    fields = _text_of(f"/proc/{number}/stat").rpartition(")")[2].split()
    return None if not fields or fields[0] in "ZX" else fields[19]


def _is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _inode_of(path: str) -> int:
    try:
        return Path(path).stat().st_ino
    except OSError:
        return 0


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
