from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from anyshape.fleet.local_engine import run_one
from anyshape.fleet.supervision import SupervisedTask, memory_by_session
from anyshape.fleet.tasks import Task, TaskLimits
from anyshape.sizes import budgets


def task(function: str, seconds: float = 60.0, gigabytes: float = 1.0, **arguments) -> Task:
    return Task("entry", "column", f"tests.fleet.work:{function}", arguments, TaskLimits(seconds, int(gigabytes * 1e9)))


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_task_that_answers_is_a_record_with_what_it_took() -> None:
    record = run_one(task("fine", value=7))
    assert (record.outcome, record.details["value"], record.stage, record.cause) == ("checked", 7, "", "")
    assert record.digest == task("fine", value=7).digest
    assert 0 < record.cpu_seconds < 30
    assert 0 < record.seconds < 60
    assert 5e6 < record.memory < 1e9
    assert record.details["process"] != os.getpid()


@pytest.mark.parametrize(
    ("function", "outcome", "cause"),
    [
        ("refuse", "refused", "pinned-dim: `batch` cannot vary"),
        ("raise_error", "defect", "ValueError: no such model"),
        ("leave", "defect", "SystemExit: 3"),
        ("crash", "crashed", "the process ended by SIGSEGV while exporting: terminate called"),
        ("vanish", "crashed", "the process ended with exit code 7 while starting"),
        ("no_such_function", "defect", "AttributeError: module 'tests.fleet.work' has no attribute 'no_such_function'"),
    ],
)
def test_every_ending_is_a_result(function: str, outcome: str, cause: str) -> None:
    record = run_one(task(function))
    assert (record.outcome, record.cause) == (outcome, cause)


def test_a_task_that_hangs_is_stopped() -> None:
    begin = time.monotonic()
    record = run_one(task("hang", seconds=2.0))
    assert (record.outcome, record.cause, record.stage) == ("timeout", "stopped after 2 s", "hanging")
    assert 2 <= time.monotonic() - begin < 20


@pytest.mark.parametrize("function", ["hog", "hog_in_child", "hog_in_session"])
def test_memory_is_counted_with_that_of_the_processes_it_starts(function: str) -> None:
    record = run_one(task(function, gigabytes=0.3))
    assert record.outcome == "out-of-memory"
    assert record.cause.startswith("stopped at 0.")
    assert record.cause.endswith(" GB, 0.3 GB were allowed")
    assert 3e8 < record.memory < 2e9


def test_a_task_that_talks_much_is_heard_to_its_end() -> None:
    assert run_one(task("spam")).outcome == "checked"


def test_what_a_task_tells_cannot_change_whose_result_it_is() -> None:
    record = run_one(task("odd"))
    assert (record.name, record.column, record.tags, record.outcome) == ("entry", "column", (), "checked")
    assert record.to_line().count(b"\n") == 1


def test_what_a_stopped_task_has_started_ends_with_it(tmp_path: Path) -> None:
    place = tmp_path / "processes"
    record = run_one(task("hang_with_child", seconds=3.0, place=str(place)))
    assert record.outcome == "timeout"
    time.sleep(0.3)
    assert not [one for one in place.read_text().split() if is_alive(int(one))]


@pytest.mark.parametrize(
    ("function", "outcome"),
    [("leave_behind", "crashed"), ("hang_with_stranger", "timeout"), ("hang_with_strangers", "timeout")],
)
def test_what_has_left_a_task_s_session_ends_with_it(function: str, outcome: str, tmp_path: Path) -> None:
    place = tmp_path / "processes"
    assert run_one(task(function, seconds=10.0, place=str(place))).outcome == outcome
    left = [int(one) for one in place.read_text().split()]
    time.sleep(0.3)
    assert left
    assert not [one for one in left if is_alive(one)]


@pytest.mark.parametrize(
    ("function", "arguments", "ending"),
    [
        ("end_guard", {"number": signal.SIGTERM}, ("checked", "")),
        ("end_guard", {"number": signal.SIGKILL}, ("crashed", "the process ended by SIGKILL while starting")),
        ("end_guard", {"number": signal.SIGSTOP}, ("timeout", "stopped after 3 s")),
        ("end_group", {}, ("crashed", "the process ended by SIGTERM while starting")),
        ("fork", {}, ("timeout", "stopped after 3 s")),
        ("forge", {}, ("refused", "")),
    ],
)
def test_a_task_that_turns_on_who_watches_it_is_a_result(
    function: str, arguments: dict, ending: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "SECONDS_OF_A_GUARD_S_END", 0.5)
    record = run_one(task(function, seconds=3.0, **arguments))
    assert (record.outcome, record.cause) == ending
    assert record.seconds < 20


def test_what_a_task_prints_does_not_fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MOST_BYTES_OF_WORDS", 10**6)
    running, most = SupervisedTask(task("print_for_ever", seconds=2.0)), 0
    while (record := running.look(0)) is None:
        most = max(most, os.fstat(running._said.fileno()).st_blocks * 512)
        time.sleep(0.01)
    assert record.outcome == "timeout"
    assert 0 < most < 10**8


def test_files_of_a_moment_are_gone_with_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run_one(task("hang_with_strangers", seconds=5.0, place=str(tmp_path / "processes"))).outcome == "timeout"
    assert [one.name for one in tmp_path.iterdir()] == ["processes"]


def test_a_task_that_nobody_waits_for_is_ended() -> None:
    running = SupervisedTask(task("fine", seconds=600.0))
    running.end()
    assert not is_alive(running.session)


def test_memory_of_a_session_is_that_of_its_processes() -> None:
    own = os.getsid(0)
    assert memory_by_session([own])[own] > 10_000_000
    assert memory_by_session([]) == {}
