"""A folder exchanged as a whole, where readers fix the names of its files: one moment shows the old, the next the new.

The new folder is made beside the old one and gets, before the exchange, whatever stands in the old one and is not
replaced: as further links to the same files, so that they are in their place at every moment.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from anyshape.errors import SavingError
from anyshape.onnxfile.destination import folder_made, kind_of
from anyshape.onnxfile.placement import (
    alone_in,
    ordinary_file,
    other_user,
    own_weights,
    take_over,
    told_in_a_sentence,
    uninterrupted,
)
from anyshape.onnxfile.temporary_folders import ASIDE, INTENDED, MADE, remove_left, temporary_folder


@dataclass(frozen=True)
class FolderStage:
    """A temporary folder that is to take a destination's place."""

    path: Path
    destination: Path
    notes: list[str] = field(default_factory=list)
    """What was removed on the way."""

    @property
    def files(self) -> tuple[str, ...]:
        """All of them, below the folder."""
        return tuple(sorted(path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file()))

    def commit(self) -> None:
        """Put the folder in its place with one step; what was there before stays if anything goes wrong."""
        with told_in_a_sentence(self.destination), alone_in(self.destination.parent), uninterrupted():
            if not self.destination.exists():
                self.path.rename(self.destination)
                return
            written = self.files
            _refuse_all_but_our_files(self.destination, written)
            left_out = {*written, *_outdated_weights(self.destination, written)}
            _take_over_all(self.destination, self.path, written)
            _carry_over(self.destination, self.path, left_out)
            old = _swap(self.path, self.destination)
            _carry_over(old, self.destination, left_out)  # what somebody put there meanwhile


@contextlib.contextmanager
def staged_folder(destination: Path) -> Iterator[FolderStage]:
    """A place for files beside the destination, gone afterwards whatever happens; those of the killed go before."""
    destination = destination.resolve()
    parent = destination.parent
    with contextlib.ExitStack() as stack:
        with told_in_a_sentence(destination):
            stack.enter_context(folder_made(parent))
            told = remove_left(parent)
            stage = FolderStage(stack.enter_context(temporary_folder(parent)) / MADE, destination, [*told])
            stage.path.mkdir()
        yield stage


# ---- what may be replaced


def _refuse_all_but_our_files(folder: Path, written: Collection[str]) -> None:
    """Only ordinary files are replaced; weights only where the model beside them lists them."""
    models = [folder / name for name in written if name.endswith(".onnx")]
    weights = {model.with_name(name) for model in models for name in own_weights(model)}
    for name in written:
        path = folder / name
        for above in path.relative_to(folder).parents[:-1]:
            if (folder / above).exists() and (kind := kind_of((folder / above).lstat())) != "a folder":
                raise SavingError(f"`{folder / above}` is {kind}, and has the name of a folder that is to be written")
        if ordinary_file(path) is not None and name.endswith(".onnx_data") and path not in weights:
            raise SavingError(f"`{path}` is somebody else's file, and has the name of the model's weights")


def _outdated_weights(folder: Path, written: Collection[str]) -> set[str]:
    """Weights of models that are replaced by others without them, unless a model that stays uses them."""
    found = set()
    for model in (folder / name for name in written if name.endswith(".onnx")):
        for name in own_weights(model):
            user = other_user(model, name)
            if user is None or model.with_name(user).relative_to(folder).as_posix() in written:
                found.add(model.with_name(name).relative_to(folder).as_posix())
    return found


def _take_over_all(old: Path, new: Path, written: Collection[str]) -> None:
    """Owners, modes and attributes of all that is replaced, the folder itself among it."""
    folders = {parent.as_posix() for name in written for parent in Path(name).parents}
    for name in (*written, *folders):
        if (old / name).exists():
            take_over((old / name).stat(), old / name, new / name)


# ---- what stays


def _carry_over(old: Path, new: Path, left_out: Collection[str], below: Path = Path()) -> None:
    """Give the new folder what stands in the old one and is not left out."""
    with os.scandir(old / below) as found:
        entries = list(found)
    for entry in entries:
        name = below / entry.name
        if name.as_posix() in left_out:
            continue
        if entry.stat(follow_symlinks=False).st_dev != old.stat().st_dev:
            raise SavingError(f"`{old / name}` is another file system, and cannot be exchanged with its folder")
        if not entry.is_dir(follow_symlinks=False):
            _link(old / name, new / name)
            continue
        if not (new / name).is_dir():
            (new / name).mkdir()
            take_over(entry.stat(), old / name, new / name)
        _carry_over(old, new, left_out, name)


def _link(old: Path, new: Path) -> None:
    """The same file in another folder; a copy where the file system has no links."""
    if os.path.lexists(new):
        if os.path.samestat(old.lstat(), new.lstat()):
            return
        new.unlink()  # somebody has replaced it since it was linked
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError:
        shutil.copy2(old, new, follow_symlinks=False)


# ---- one step

_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux."""
_HERE = -100
"""AT_FDCWD: paths are taken as they are written."""


def _swap(new: Path, destination: Path) -> Path:
    """Exchange two folders; where the old one is then."""
    if _is_exchanged(new, destination):
        return new
    aside = new.with_name(ASIDE)
    new.with_name(INTENDED).write_text(destination.name, encoding="utf-8")  # for who finds it after a kill
    destination.rename(aside)
    try:
        new.rename(destination)
    except BaseException:
        aside.rename(destination)
        raise
    return aside


def _is_exchanged(new: Path, destination: Path) -> bool:
    """Whether the system did it in one step; not all can, nor can all file systems."""
    try:
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    if exchange(_HERE, os.fsencode(new), _HERE, os.fsencode(destination), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number))
