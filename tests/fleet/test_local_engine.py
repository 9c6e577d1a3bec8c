from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from anyshape.fleet.local_engine import run_here, usual_jobs
from anyshape.fleet.tasks import Task, TaskLimits
from tests.fleet.test_supervision import is_alive


def tasks(count: int, function: str = "fine", **arguments) -> list[Task]:
    return [
        Task(f"entry {number}", "column", f"tests.fleet.work:{function}", {"value": number, **arguments})
        for number in range(count)
    ]


def test_each_task_has_a_process_and_a_record_of_its_own() -> None:
    records = list(run_here(tasks(6), 2))
    assert sorted((one.name, one.details["value"]) for one in records) == [(f"entry {n}", n) for n in range(6)]
    assert len({one.details["process"] for one in records}) == 6


def test_records_come_as_tasks_end_and_not_in_their_order() -> None:
    first = Task("slow", "column", "tests.fleet.work:fine", {"seconds": 5.0}, TaskLimits(60))
    records = run_here([first, *tasks(2)], 2)
    assert [one.name for one in records] == ["entry 0", "entry 1", "slow"]


def test_no_more_run_at_a_time_than_jobs() -> None:
    begin = time.monotonic()
    list(run_here(tasks(4, seconds=0.5), 2))
    assert time.monotonic() - begin > 1.0


def test_who_stops_listening_ends_what_runs(tmp_path: Path) -> None:
    place = tmp_path / "processes"
    slow = Task("slow", "column", "tests.fleet.work:hang_with_child", {"place": str(place)})
    records = run_here([slow, *tasks(1, seconds=1.0)], 2)
    next(records)
    records.close()
    time.sleep(0.3)
    assert place.exists()
    assert not [one for one in place.read_text().split() if is_alive(int(one))]


def test_tasks_end_with_the_process_that_runs_them_even_if_it_is_killed(tmp_path: Path) -> None:
    place = tmp_path / "processes"
    code = (
        "from anyshape.fleet.local_engine import run_one\nfrom anyshape.fleet.tasks import Task\n"
        f"run_one(Task('a', 'b', 'tests.fleet.work:hang_with_child', {{'place': {str(place)!r}}}))"
    )
    driver = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    deadline = time.monotonic() + 60
    while not (place.exists() and len(place.read_text().split()) == 2):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    worker = int(place.read_text().split()[0])
    deadline = time.monotonic() + 10
    while is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(worker)
    child = int(place.read_text().split()[1])  # of the task's own: nobody is left to end it but this test
    subprocess.run(["kill", "-9", str(child)], check=False)


def test_as_many_jobs_as_cores() -> None:
    assert usual_jobs() >= 1
