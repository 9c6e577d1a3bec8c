"""Tasks on a cluster of Ray's: its scheduler gives each to a node with room for it, and each record streams back here.

A task runs under the same supervision as on one machine, in a fresh process that the Ray worker starts: a crash, a hang
or too much memory ends that process alone and is a result. What ends the Ray worker itself, such as a node that is
lost, is no result, and Ray gives the task to another node. Ray decides where and when; nothing here is a scheduler.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from anyshape.errors import AnyshapeError, DeclarationError, first_line, named_line
from anyshape.fleet.local_engine import run_one
from anyshape.fleet.result_lines import TaskRecord
from anyshape.fleet.tasks import Task, TaskLimits
from anyshape.sizes import budgets

Records = Mapping[tuple[str, str], TaskRecord]


# ---- what a task asks the cluster for, learned from earlier results


@dataclass(frozen=True)
class Demand:
    """Cores, and bytes of memory."""

    cpus: int
    memory: int


def demand_of(task: Task, known: Records) -> Demand:
    """As much as the task took before; for a new one, as much as nine of ten of its column took; else its limit."""
    before = known.get(task.key)
    alike = [before] if before is not None else [one for one in known.values() if one.column == task.column]
    if not alike or (before is None and len(alike) < budgets.FEWEST_TIMES):
        return Demand(task.threads, task.limits.bytes)
    cores = sorted(one.cpu_seconds / one.seconds for one in alike if one.seconds > budgets.SHORTEST_TIME_COMPARED)
    cpus = max(1, round(_tenth_from_top(cores))) if cores else task.threads
    memory = _tenth_from_top(sorted(one.memory for one in alike)) * budgets.ROOM_FOR_MEMORY
    return Demand(cpus, int(min(memory, task.limits.bytes)))


def _tenth_from_top(values: Sequence[float]) -> float:
    return values[min(len(values) - 1, math.floor(0.9 * len(values)))]


# ---- the cluster


def run_on_ray(tasks: Sequence[Task], known: Records, address: str | None) -> Iterator[TaskRecord]:
    """The records in the order in which the tasks end; whoever stops listening cancels the rest."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    try:
        import ray
    except ImportError:
        raise AnyshapeError("--engine ray needs ray: pip install 'anyshape[ray]'") from None
    with _cluster_at(ray, address), _sigterm_kept():
        yield from _records_from(ray, tasks, dict(known))


@contextlib.contextmanager
def _cluster_at(ray: Any, address: str | None) -> Iterator[None]:
    """A cluster at an address, or one of this machine alone."""
    if ray.is_initialized():
        yield
        return
    _refuse_silent_address(address or "")
    own = {"include_dashboard": False} if address is None else {}
    try:
        try:
            with _sigterm_kept():
                ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
        except Exception as error:
            where = "can be started here" if address is None else f"answers at `{address}`"
            raise DeclarationError(f"no cluster of Ray's {where}: {first_line(error)}") from error
        yield
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Ray puts an answer of its own in the place of ours, and makes of ours a `SystemExit` like a model's own."""
    ours = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        if callable(ours):
            ours(signal.SIGTERM, None)
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours or signal.SIG_DFL)


def _refuse_silent_address(address: str) -> None:
    """Ray itself asks for minutes where nobody answers."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), budgets.SECONDS_UNTIL_A_CLUSTER_ANSWERS).close()
        except (OSError, OverflowError) as error:
            raise DeclarationError(f"no cluster of Ray's answers at `{address}`: {first_line(error)}") from None


def _records_from(ray: Any, tasks: Sequence[Task], known: dict[tuple[str, str], TaskRecord]) -> Iterator[TaskRecord]:
    """Not all at once: what has ended teaches what the next ones ask for."""
    remote = ray.remote(max_retries=budgets.RETRIES_OF_A_LOST_TASK)(_run_supervised)
    waiting, running = list(reversed(tasks)), dict[Any, Task]()
    try:
        while waiting or running:
            most = budgets.TASKS_PER_CORE_UNDER_WAY * max(1, int(ray.cluster_resources().get("CPU", 1)))
            while waiting and len(running) < most:
                task = waiting.pop()
                demand = _within_cluster(ray, demand_of(task, known))
                options = remote.options(num_cpus=demand.cpus, memory=demand.memory)
                running[options.remote(asdict(task))] = task
            ended, _ = ray.wait(list(running), num_returns=1, timeout=budgets.SECONDS_BETWEEN_LOOKS_AT_A_CLUSTER)
            for reference in ended:
                record = _record_from(ray, reference, running.pop(reference))
                known[record.key] = record
                yield record
    finally:
        for reference in running:
            with contextlib.suppress(Exception):  # a cluster that is gone has nothing to cancel
                ray.cancel(reference, force=True)


def _within_cluster(ray: Any, demand: Demand) -> Demand:
    """No more than the largest node has: what no node can give would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    most_cpus = max((int(node.get("CPU", 0)) for node in nodes), default=0)
    most_memory = max((int(node.get("memory", 0)) for node in nodes), default=0)
    return Demand(min(demand.cpus, most_cpus or demand.cpus), min(demand.memory, most_memory or demand.memory))


def _record_from(ray: Any, reference: Any, task: Task) -> TaskRecord:
    """What came back; a task that was lost again and again is a result, too."""
    try:
        return _as_record(ray.get(reference))
    except ray.exceptions.OutOfMemoryError as error:
        return TaskRecord(task.name, task.column, "out-of-memory", task.digest, named_line(error), tags=task.tags)
    except ray.exceptions.RayError as error:
        cause = f"lost {budgets.RETRIES_OF_A_LOST_TASK + 1} times, at last by {named_line(error)}"
        return TaskRecord(task.name, task.column, "crashed", task.digest, cause, tags=task.tags)


def _run_supervised(given: Mapping[str, Any]) -> dict[str, Any]:
    """On the node: plain values in, plain values out."""
    limits = TaskLimits(**given["limits"])
    task = Task(**{**given, "limits": limits, "tags": tuple(given["tags"])})
    return asdict(replace(run_one(task), digest=task.digest))


def _as_record(told: Mapping[str, Any]) -> TaskRecord:
    return TaskRecord(**{**told, "tags": tuple(told["tags"])})
