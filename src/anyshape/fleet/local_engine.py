"""Tasks on this machine: so many processes at a time, and a record of each as it ends."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from multiprocessing.connection import wait

from anyshape.fleet.result_lines import TaskRecord
from anyshape.fleet.supervision import SupervisedTask, memory_by_session
from anyshape.fleet.tasks import Task
from anyshape.sizes import budgets


def run_here(tasks: Iterable[Task], jobs: int) -> Iterator[TaskRecord]:
    """The records in the order in which the tasks end; whoever stops listening ends those that run."""
    waiting, running = iter(tasks), list[SupervisedTask]()
    try:
        while True:
            while len(running) < jobs and (task := next(waiting, None)) is not None:
                running.append(SupervisedTask(task))
            if not running:
                return
            wait([one.fileno() for one in running if not one.is_silent], timeout=budgets.SECONDS_BETWEEN_LOOKS_AT_TASKS)
            taken = memory_by_session(one.session for one in running)
            for one in tuple(running):
                if (record := one.look(taken[one.session])) is not None:
                    running.remove(one)
                    yield record
    finally:
        for one in running:
            one.tell_to_end()
        for one in running:
            one.end()


def run_one(task: Task) -> TaskRecord:
    """One task, in this thread until it ends."""
    return next(run_here([task], 1))


def usual_jobs() -> int:
    """As many as this process may have cores."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
