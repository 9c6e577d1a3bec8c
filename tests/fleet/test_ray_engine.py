"""Ray on this machine alone: several nodes, each a process, of which one is killed; and a driver that is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from anyshape.cli.endings import Terminated
from anyshape.errors import AnyshapeError, DeclarationError
from anyshape.fleet.ray_engine import (
    Demand,
    _as_record,
    _run_supervised,
    _sigterm_kept,
    _within_cluster,
    demand_of,
    run_on_ray,
)
from anyshape.fleet.result_lines import TaskRecord, read_records
from anyshape.fleet.tasks import Task, TaskLimits
from tests.fleet.test_supervision import is_alive

TASK = Task("new", "anyshape", "tests.fleet.work:fine", {"value": 3}, TaskLimits(60, 8 * 10**9), ("tag",))


def known(count: int, memory: int, cpu_seconds: float, seconds: float = 10.0) -> dict[tuple[str, str], TaskRecord]:
    rows = [TaskRecord(f"m{n}", "anyshape", "checked", memory=memory, cpu_seconds=cpu_seconds, seconds=seconds)
            for n in range(count)]  # fmt: skip
    return {one.key: one for one in rows}


# ---- what is asked for


def test_nothing_known_asks_for_the_limit() -> None:
    assert demand_of(TASK, {}) == Demand(1, 8 * 10**9)
    assert demand_of(TASK, known(3, 10**9, 10.0)) == Demand(1, 8 * 10**9)


def test_a_new_task_asks_for_what_others_of_its_column_took() -> None:
    assert demand_of(TASK, known(20, 10**9, 30.0)) == Demand(3, 1_250_000_000)
    others = {key: replace(one, column="torch") for key, one in known(20, 10**9, 30.0).items()}
    assert demand_of(TASK, others) == Demand(1, 8 * 10**9)


def test_one_that_ran_before_asks_for_what_it_took_and_never_for_more_than_its_limit() -> None:
    before = known(20, 10**9, 10.0) | {
        TASK.key: TaskRecord("new", "anyshape", "checked", memory=2 * 10**9, seconds=0.5)
    }
    assert demand_of(TASK, before) == Demand(1, 2_500_000_000)
    assert (
        demand_of(TASK, {TASK.key: TaskRecord("new", "anyshape", "out-of-memory", memory=10**11)}).memory == 8 * 10**9
    )


def test_no_node_is_asked_for_more_than_the_largest_has() -> None:
    class Ray:
        @staticmethod
        def nodes():
            sizes = [(True, 2, 4e9), (True, 4, 3e9), (False, 64, 1e12)]
            return [{"Alive": alive, "Resources": {"CPU": cpus, "memory": m}} for alive, cpus, m in sizes]

    assert _within_cluster(Ray, Demand(16, 10**10)) == Demand(4, 4 * 10**9)
    assert _within_cluster(Ray, Demand(1, 10**9)) == Demand(1, 10**9)


def test_a_task_goes_to_a_node_and_comes_back_as_plain_values() -> None:
    from dataclasses import asdict

    told = _run_supervised(json.loads(json.dumps(asdict(TASK))))
    record = _as_record(json.loads(json.dumps(told)))
    assert (record.key, record.outcome, record.digest, record.tags) == (TASK.key, "checked", TASK.digest, ("tag",))
    assert record.details["value"] == 3


def test_without_ray_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(AnyshapeError) as told:
        next(run_on_ray([TASK], {}, None))
    assert str(told.value) == "--engine ray needs ray: pip install 'anyshape[ray]'"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999"])
def test_an_address_where_nobody_answers_is_one_sentence_at_once(address: str) -> None:
    pytest.importorskip("ray", reason="the extra [ray] is not installed")
    begin = time.monotonic()
    with pytest.raises(DeclarationError) as told:
        next(run_on_ray([TASK], {}, address))
    assert str(told.value).startswith(f"no cluster of Ray's answers at `{address}`: ")
    assert time.monotonic() - begin < 30


def test_sigterm_stays_ours_whatever_ray_puts_in_its_place() -> None:
    def end(*_: object) -> None:
        raise Terminated(143)

    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(Terminated), _sigterm_kept():
            signal.signal(signal.SIGTERM, lambda number, _: sys.exit(number))
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is end
    finally:
        signal.signal(signal.SIGTERM, before)


# ---- a cluster

DRIVER = """
import json, sys
from pathlib import Path
from anyshape.fleet.ray_engine import run_on_ray
from anyshape.fleet.sweep_run import SweepWishes, opened_sweep
from anyshape.fleet.tasks import Task, TaskLimits
address, folder, count, resume = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "resume"
tasks = [Task(f"entry {n}", "small", "tests.fleet.work:fine", {"value": n, "seconds": 0.1}, TaskLimits(120, 10**8))
         for n in range(count)]
tasks[7] = Task("entry 7", "small", "tests.fleet.work:crash", {}, TaskLimits(120, 10**8))
wishes = SweepWishes(folder, resume=resume)
with opened_sweep(tasks, wishes) as sweep:
    sweep.run(lambda tasks, known: run_on_ray(tasks, known, address), lambda record: None)
"""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    pytest.importorskip("ray", reason="the extra [ray] is not installed")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # else 127.0.0.1 is replaced by an outer address
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray")
    monkeypatch.setenv("RAY_TMPDIR", folder)
    monkeypatch.setenv("TMPDIR", folder)
    Path(folder, "ray").mkdir()  # a socket's name has little room, so that it is not pytest's
    node = {"node_ip_address": "127.0.0.1", "object_store_memory": 80_000_000, "memory": 2 * 10**9}
    made = Cluster(initialize_head=True, head_node_args={**node, "num_cpus": 1, "include_dashboard": False})
    try:
        made.spares = [made.add_node(**node, num_cpus=1) for _ in range(2)]
        made.wait_for_nodes()
        yield made
    finally:
        processes = [
            one.process.pid for n in made.list_all_nodes() for kind in n.all_processes.values() for one in kind
        ]
        made.shutdown()
        wait_until(lambda: not any(map(is_alive, processes)), 30)
        shutil.rmtree(folder, ignore_errors=True)


STRANDED = """
import sys
from anyshape.fleet.ray_engine import run_on_ray
from anyshape.fleet.tasks import Task, TaskLimits
task = Task("hangs", "small", "tests.fleet.work:hang_with_strangers", {"place": sys.argv[2]}, TaskLimits(120, 10**8))
list(run_on_ray([task], {}, sys.argv[1]))
"""


@pytest.mark.slow
def test_what_a_task_on_a_cluster_has_started_ends_with_the_driver(cluster, tmp_path: Path) -> None:
    """Ray ends its worker and the children of this by SIGKILL."""
    place, temporary = tmp_path / "processes", Path(os.environ["TMPDIR"])
    driver = subprocess.Popen([sys.executable, "-c", STRANDED, cluster.address, str(place)])
    try:
        wait_until(lambda: place.exists() and len(place.read_text().split()) == 3, 60)
        assert list(temporary.glob("anyshape-task-*/left"))
    finally:
        driver.kill()
        driver.wait()
    wait_until(lambda: not [one for one in place.read_text().split() if is_alive(int(one))], 30)
    wait_until(lambda: not list(temporary.glob("anyshape-task-*")), 30)


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def start_driver(address: str, folder: Path, count: int, how: str) -> subprocess.Popen[bytes]:
    with (folder.parent / f"{how}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, address, str(folder), str(count), how], stdout=log, stderr=log
        )


@pytest.mark.slow
def test_a_lost_node_and_a_killed_driver_cost_no_result_and_double_none(cluster, tmp_path: Path) -> None:
    folder, count = tmp_path / "results", 200
    lines = folder / "results.jsonl"

    def written() -> int:
        return lines.read_bytes().count(b"\n") if lines.exists() else 0

    drivers = [start_driver(cluster.address, folder, count, "start")]
    try:
        wait_until(lambda: written() >= 50, 240)
        cluster.remove_node(cluster.spares[0], allow_graceful=False)
        wait_until(lambda: written() >= 100, 240)
        drivers[0].send_signal(signal.SIGKILL)
        drivers[0].wait()
        before = lines.read_bytes()
        assert 100 <= before.count(b"\n") < count
        drivers.append(start_driver(cluster.address, folder, count, "resume"))
        assert drivers[1].wait(timeout=300) == 0, (tmp_path / "resume.log").read_text()
    finally:
        for driver in drivers:
            driver.kill()
            driver.wait()
    assert lines.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    names = [json.loads(line)["name"] for line in lines.read_text().splitlines() if line]
    assert sorted(names) == sorted(f"entry {n}" for n in range(count))
    records = read_records(folder)
    assert {one.outcome for name, one in records.items() if name[0] != "entry 7"} == {"checked"}
    assert records["entry 7", "small"].cause == "the process ended by SIGSEGV while exporting: terminate called"
    assert (folder / "results.html").exists()
