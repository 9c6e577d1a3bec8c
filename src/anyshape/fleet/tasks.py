"""A task: a function by its name with plain arguments, what it may take, and which part of all tasks it belongs to.

Nothing here knows what a task does: a model to export, a file to check, or a share of the sizes of one file.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from anyshape.errors import DeclarationError
from anyshape.sizes import budgets


@dataclass(frozen=True)
class TaskLimits:
    """What the process of a task may take, with all processes that it starts."""

    seconds: float = budgets.SECONDS_OF_A_TASK
    bytes: int = budgets.BYTES_OF_A_TASK

    def __post_init__(self) -> None:
        _refuse_no_limit(self.seconds, self.bytes / 1e9)

    @classmethod
    def of(cls, seconds: float, gigabytes: float) -> Self:
        """As they are written on a command line."""
        _refuse_no_limit(seconds, gigabytes)
        return cls(seconds, int(gigabytes * 1e9))


def _refuse_no_limit(seconds: float, gigabytes: float) -> None:
    if not (0 < seconds < math.inf and 0 < gigabytes < math.inf):
        raise DeclarationError(
            f"a task is given {seconds:g} s and {gigabytes:g} GB: both must be more than nothing and have an end"
        )


@dataclass(frozen=True)
class Task:
    """One entry in one column."""

    name: str
    column: str
    function: str
    """`package.module:function`; it is given a function to tell its stage to, and `arguments` as keywords."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Plain values: they go to another process, and may go to another machine."""
    limits: TaskLimits = field(default_factory=TaskLimits)
    tags: tuple[str, ...] = ()
    threads: int = 1
    written: Mapping[str, str] = field(default_factory=dict)
    """Where what it makes goes, a further argument where there is any: results that move are the same results."""

    @property
    def request(self) -> dict[str, Any]:
        """What its process is told."""
        arguments = {**self.arguments, "written": dict(self.written)} if self.written else dict(self.arguments)
        return {"function": self.function, "arguments": arguments}

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.column

    @property
    def digest(self) -> str:
        """What is done, apart from limits: a result for something else is no result for this."""
        said = json.dumps([self.name, self.column, self.function, self.arguments], sort_keys=True, default=str)
        return hashlib.sha256(said.encode()).hexdigest()[:16]


# ---- shards


@dataclass(frozen=True)
class Shard:
    """One part of N, counted from 1; a name always falls into the same one, whatever else is in the collection."""

    number: int = 1
    count: int = 1

    def holds(self, name: str) -> bool:
        return int(hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest(), 16) % self.count == self.number - 1

    def part_of(self, tasks: Iterable[Task]) -> list[Task]:
        """All columns of an entry are in one part, where they can be compared."""
        return [task for task in tasks if self.holds(task.name)]


def parse_shard(text: str) -> Shard:
    """`3/8`: the third of eight."""
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise DeclarationError(f"the shard is `{text}`: write i/N, from 1/N to N/N")
    return Shard(int(found[1]), int(found[2]))


def refuse_one_key_twice(tasks: Sequence[Task]) -> None:
    known: set[tuple[str, str]] = set()
    for task in tasks:
        if task.key in known:
            raise DeclarationError(
                f"two entries are called `{task.name}` in column `{task.column}`: a result would not say whose it is"
            )
        known.add(task.key)
