"""Worker processes that are used for many entries, and replaced where one crashes, hangs or grows too large."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from coverage_models.worker import serve

Record = dict[str, Any]


@dataclass(frozen=True)
class Task:
    source: str
    name: str
    exporter: str


@dataclass(frozen=True)
class Limits:
    seconds: float
    """For each stage of a task: preparing, exporting, judging."""
    gigabytes: int
    tasks: int = 60
    """After so many, a worker is replaced: tracers keep things."""


@dataclass
class Worker:
    """One process, what it does, and until when."""

    limits: Limits
    pipe: Connection = field(init=False)
    process: Any = field(init=False)
    task: Task | None = None
    stage: str = "starting"
    deadline: float = float("inf")
    done: int = 0

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.limits.gigabytes), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        self.task = task
        self.done += 1
        self._enter("preparing")
        self.pipe.send((task.source, task.name, task.exporter))

    def _enter(self, stage: str) -> None:
        self.stage = stage
        self.deadline = time.monotonic() + self.limits.seconds

    def hear(self) -> Record | None:
        """A record if the task is over, by itself or by a crash."""
        try:
            kind, content = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return self.ended(f"the process ended with code {self.process.exitcode}")
        if kind == "stage":
            self._enter(content)
        return content if kind == "done" else None

    def ended(self, cause: str) -> Record:
        """A crash or a time-out is an outcome: of the entry before the export, of the file after it."""
        outcome = {"preparing": "defect", "exporting": "refused", "judging": "wrong"}.get(self.stage, "defect")
        return {"outcome": outcome, "cause": f"{cause} while {self.stage}"}

    def stop(self) -> None:
        """Asked first, so that it puts its things away."""
        if self.task is None and self.process.is_alive():
            with contextlib.suppress(OSError):
                self.pipe.send(None)
            self.process.join(5)
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Pool:
    """Runs tasks on a number of workers, in order, and yields records as they come.

    An entry that fails in PyTorch itself is tried again in a fresh process: an earlier export may have left things
    behind.
    """

    def __init__(self, jobs: int, limits: Limits) -> None:
        self.jobs, self.limits = jobs, limits

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Record]]:
        waiting = list(tasks)
        workers = [Worker(self.limits) for _ in range(min(self.jobs, len(waiting)))]
        try:
            while waiting or any(worker.task for worker in workers):
                for worker in workers:
                    if worker.task is None and waiting:
                        worker.give(waiting.pop(0))
                wait([worker.pipe for worker in workers], timeout=1.0)
                for index, worker in enumerate(workers):
                    task, record = worker.task, self._record(worker)
                    if task is None or record is None:
                        continue
                    worker.task = None
                    again = record["outcome"] == "defect" and worker.done > 1
                    if again or self._is_spent(worker):
                        worker.stop()
                        workers[index] = Worker(self.limits)
                    if again:
                        waiting.insert(0, task)
                    else:
                        yield task, record
        finally:
            for worker in workers:
                worker.stop()

    def _record(self, worker: Worker) -> Record | None:
        while worker.pipe.poll():
            if (record := worker.hear()) is not None:
                return record
        if worker.task is not None and time.monotonic() > worker.deadline:
            worker.process.kill()
            return worker.ended(f"stopped after {self.limits.seconds:g} s")
        return None

    def _is_spent(self, worker: Worker) -> bool:
        return not worker.process.is_alive() or worker.done >= self.limits.tasks
