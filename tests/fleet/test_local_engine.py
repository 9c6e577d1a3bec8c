from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_tasks_end_with_the_process_that_runs_them_however_it_ends(number: int, tmp_path: Path) -> None:
    """And what they have started, also where that has its own session, no parent, and nothing of its environment."""
    place, folder = tmp_path / "processes", tmp_path / "temporary"
    folder.mkdir()
    code = (
        "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # which `nohup` has all ignore
        "from anyshape.fleet.local_engine import run_one\nfrom anyshape.fleet.tasks import Task\n"
        f"run_one(Task('a', 'b', 'tests.fleet.work:hang_with_strangers', {{'place': {str(place)!r}}}))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(folder)}
    driver = subprocess.Popen([sys.executable, "-c", code], env=environment)
    wait_until(lambda: place.exists() and len(place.read_text().split()) == 3)
    assert list(folder.glob("*/left"))
    driver.send_signal(number)
    driver.wait()
    wait_until(lambda: not [one for one in place.read_text().split() if is_alive(int(one))])
    wait_until(lambda: not list(folder.iterdir()))


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_as_many_jobs_as_cores() -> None:
    assert usual_jobs() >= 1
