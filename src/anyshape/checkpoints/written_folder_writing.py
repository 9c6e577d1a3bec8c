"""A folder that is written whole or not at all: made beside its place, and put there when everything is right."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anyshape.errors import DeclarationError


@dataclass(frozen=True)
class FolderStage:
    """A temporary folder whose files are to go to a destination."""

    path: Path
    destination: Path
    aside: Path
    """For files that are replaced, until all is done."""

    @property
    def files(self) -> tuple[str, ...]:
        """All of them, below the folder."""
        return tuple(sorted(path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file()))

    def commit(self) -> None:
        """Put every file in its place; what was there before comes back if anything goes wrong."""
        files = [Path(file) for file in self.files]
        made = [folder for folder in _folders(self.destination, files) if not folder.exists()]
        done: list[Path] = []
        try:
            for folder in made:
                folder.mkdir()
            for file in [*files, *_outdated(files)]:
                self._put(file, done)
        except BaseException:
            self._undo(done, made)
            raise

    def _put(self, file: Path, done: list[Path]) -> None:
        done.append(file)
        old, kept = self.destination / file, self.aside / file
        if old.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            old.replace(kept)
        if (self.path / file).exists():
            (self.path / file).replace(old)

    def _undo(self, done: list[Path], made: list[Path]) -> None:
        for file in reversed(done):
            if not (self.path / file).exists():
                (self.destination / file).unlink(missing_ok=True)
            if (self.aside / file).exists():
                (self.aside / file).replace(self.destination / file)
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _outdated(files: list[Path]) -> list[Path]:
    """Weights beside a model that is replaced by one without."""
    beside = [file.with_name(f"{file.name}.data") for file in files if file.suffix == ".onnx"]
    return [data for data in beside if data not in files]


def _folders(destination: Path, files: list[Path]) -> list[Path]:
    """The destination and the folders below it, each after the one that it stands in."""
    below = sorted({destination / parent for file in files for parent in file.parents})
    return [destination, *(folder for folder in below if folder != destination)]


@contextlib.contextmanager
def staged_folder(destination: Path) -> Iterator[FolderStage]:
    """A place for files beside the destination, gone afterwards whatever happens."""
    with tempfile.TemporaryDirectory(prefix=".anyshape-", dir=destination.parent) as folder:
        stage = FolderStage(Path(folder) / "new", destination, Path(folder) / "old")
        stage.path.mkdir()
        yield stage


def check_folder(out: str | os.PathLike[str], source: Path) -> Path:
    """The folder to write to, or one sentence about why not."""
    path = Path(out).absolute()
    if path.exists() and not path.is_dir():
        raise DeclarationError(f"`{out}` is a file: a checkpoint is exported to a folder")
    if path.resolve() == source.resolve():
        raise DeclarationError(f"`{out}` is the checkpoint itself: name another folder")
    if not path.parent.is_dir():
        raise DeclarationError(f"the folder `{path.parent}` does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DeclarationError(f"the folder `{path if path.exists() else path.parent}` cannot be written to")
    return path
