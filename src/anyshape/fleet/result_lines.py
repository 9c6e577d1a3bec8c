"""What became of tasks, as lines of JSON: each written whole when its task ends, and all found again after a kill.

One process writes a file at a time. A line that a kill has cut is no result, and its task is run again.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from anyshape.errors import DeclarationError, SavingError, reason_of_system
from anyshape.fleet.tasks import Shard, Task
from anyshape.onnxfile.destination import replace_text

GOOD, BAD = ("checked", "narrowed", "unchecked"), ("refused", "wrong", "timeout", "out-of-memory", "crashed", "defect")
OUTCOMES = (*GOOD, *BAD)
"""From the best to the worst.

A file that is wrong is worse than none. What ends a process says nothing about the model and leaves nothing behind, and
a `defect` is an entry that cannot be run at all.
"""


@dataclass(frozen=True)
class TaskRecord:
    """One result: which task, how it ended, and what it took."""

    name: str
    column: str
    outcome: str
    digest: str = ""
    cause: str = ""
    """Why it is not better, in one line."""
    stage: str = ""
    """What the task was at when its process ended, where it ended by itself."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the process and all that it has waited for."""
    memory: int = 0
    """Bytes, the most that was seen."""
    host: str = ""
    tags: tuple[str, ...] = ()
    report: str = ""
    """A page about it, relative to the folder of results."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else the task tells."""

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.column

    @property
    def is_good(self) -> bool:
        return self.outcome in GOOD

    @property
    def rank(self) -> int:
        """How bad it is; an outcome of somebody else's is as bad as any."""
        return OUTCOMES.index(self.outcome) if self.outcome in OUTCOMES else len(OUTCOMES)

    def to_line(self) -> bytes:
        kept = {name: value for name, value in asdict(self).items() if value or name in ("name", "column", "outcome")}
        try:
            text = json.dumps(kept, separators=(",", ":"), default=str, allow_nan=False)
        except ValueError:  # what is no number has no place in JSON but as a text
            text = json.dumps(json.loads(json.dumps(kept, default=str), parse_constant=str), separators=(",", ":"))
        return text.encode() + b"\n"


def _record_of(line: bytes) -> TaskRecord | None:
    """What stands in a line; None where it is cut, or no result at all."""
    try:
        found = json.loads(line)
        texts = {name: str(found.get(name, "")) for name in _TEXTS}
        numbers = {name: float(found.get(name, 0)) for name in ("seconds", "cpu_seconds")}
        tags, details = tuple(map(str, found.get("tags", ()))), dict(found.get("details", {}))
        record = TaskRecord(**texts, **numbers, memory=int(found.get("memory", 0)), tags=tags, details=details)  # type: ignore[arg-type]
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    return record if record.name and record.column and record.outcome else None


_TEXTS = ("name", "column", "outcome", "digest", "cause", "stage", "host", "report")


# ---- the file


LINES, SUFFIX = "results", ".jsonl"


def lines_path(folder: Path, shard: Shard) -> Path:
    """Each shard has a file of its own, so that several machines may share a folder."""
    part = f"-{shard.number}-of-{shard.count}" if shard.count > 1 else ""
    return folder / f"{LINES}{part}{SUFFIX}"


def read_records(place: Path) -> dict[tuple[str, str], TaskRecord]:
    """The newest result of each task, from a file, or from all files of a folder of results."""
    files = sorted(place.glob(f"{LINES}*{SUFFIX}")) if place.is_dir() else [place]
    if not files or not all(file.is_file() for file in files):
        raise DeclarationError(f"there are no results in `{place}`: name a folder of a sweep, or a file of its lines")
    found: dict[tuple[str, str], TaskRecord] = {}
    for file in files:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise DeclarationError(f"`{file}` cannot be read: {reason_of_system(error)}") from None
        records = [record for line in content.splitlines() if (record := _record_of(line)) is not None]
        if content.strip() and not records:
            raise DeclarationError(f"`{file}` holds no line of a sweep's")
        found |= {record.key: record for record in records}
    return found


def left_to_run(
    tasks: Iterable[Task], known: Mapping[tuple[str, str], TaskRecord], again: Iterable[str] = ()
) -> list[Task]:
    """Tasks without a result, with a result for other options, or with an outcome that is to be tried again."""
    outcomes = frozenset(again)
    return [
        task
        for task in tasks
        if (record := known.get(task.key)) is None or record.digest != task.digest or record.outcome in outcomes
    ]


class Journal:
    """The one writer of a file of lines."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _lock(self._file, path)
            self._mend_the_last_line()
        except BaseException:
            os.close(self._file)
            raise

    def append(self, record: TaskRecord) -> None:
        """One write, then on the disk: a kill, or a machine that loses its power, costs no result that was told."""
        line = record.to_line()
        try:
            while line := line[os.write(self._file, line) :]:  # a full disk takes a part first
                pass
            os.fsync(self._file)
        except OSError as error:
            raise SavingError(f"`{self.path}` cannot be written: {reason_of_system(error)}") from None

    def close(self) -> None:
        os.close(self._file)

    def _mend_the_last_line(self) -> None:
        """What a kill has left of a line is taken away: it is no result, and other readers of JSON would stumble."""
        size = os.fstat(self._file).st_size
        if not size or os.pread(self._file, 1, size - 1) == b"\n":
            return
        begin = self.path.read_bytes().rfind(b"\n") + 1
        if _record_of(os.pread(self._file, size - begin, begin)) is not None:
            os.write(self._file, b"\n")
        else:
            os.ftruncate(self._file, begin)


@contextlib.contextmanager
def journal_at(path: Path) -> Iterator[Journal]:
    journal = Journal(path)
    try:
        yield journal
    finally:
        journal.close()


def _lock(file: int, path: Path) -> None:
    """Held until the process ends, however that may be; a system without such locks has none."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise DeclarationError(f"another sweep is writing to `{path}`: wait for it, or name another folder") from None


# ---- many files into one


def merge_records(places: Iterable[Path], destination: Path) -> dict[tuple[str, str], TaskRecord]:
    """All results in one file, a line each; of two for one task the later place counts."""
    merged: dict[tuple[str, str], TaskRecord] = {}
    for place in places:
        merged |= read_records(place)
    # what a sweep writes there meanwhile would be lost
    with journal_at(destination) if destination.exists() else contextlib.nullcontext():
        replace_text(destination, b"".join(merged[key].to_line() for key in sorted(merged)))
    return merged
