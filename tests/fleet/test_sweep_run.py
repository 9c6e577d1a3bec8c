from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anyshape.errors import DeclarationError
from anyshape.fleet.local_engine import run_here
from anyshape.fleet.result_lines import TaskRecord, read_records
from anyshape.fleet.sweep_run import SweepWishes, run_sweep, tasks_left
from anyshape.fleet.tasks import Shard, Task

TASKS = [Task(f"entry {n}", "small", "tests.fleet.work:fine", {"value": n}) for n in range(6)]


def engine(tasks, known):
    return run_here(tasks, 2)


def sweep(wishes: SweepWishes, tasks=TASKS, show=lambda record: None, engine=engine):
    left, known = tasks_left(tasks, wishes)
    return run_sweep(left, known, wishes, engine, show)


def test_every_result_is_on_the_disk_before_it_is_shown(tmp_path: Path) -> None:
    wishes, counts = SweepWishes(tmp_path), []
    summary = sweep(wishes, show=lambda record: counts.append(len(read_records(tmp_path))))
    assert counts == [1, 2, 3, 4, 5, 6]
    assert str(summary) == (
        "swept: 6 results\n  small        6 checked\n"
        f"  lines        {tmp_path}/results.jsonl\n  page         {tmp_path}/results.html"
    )
    assert summary.to_dict()["columns"] == {"small": {"checked": 6}}


def test_a_sweep_that_stops_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def stopping(tasks, known):
        yield from list(run_here(tasks[:2], 2))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(SweepWishes(tmp_path), engine=stopping)
    with pytest.raises(DeclarationError) as told:
        sweep(SweepWishes(tmp_path))
    lines = tmp_path / "results.jsonl"
    assert str(told.value) == f"`{lines}` holds results: --resume goes on with them, or name another folder"
    summary = sweep(SweepWishes(tmp_path, resume=True))
    assert str(summary).startswith("swept: 6 results, 2 of them earlier\n")
    assert lines.read_bytes().count(b"\n") == 6


def test_other_options_and_chosen_outcomes_are_run_again(tmp_path: Path) -> None:
    sweep(SweepWishes(tmp_path))
    changed = [replace(TASKS[0], arguments={"value": 100}), *TASKS[1:]]
    left, known = tasks_left(changed, SweepWishes(tmp_path, resume=True))
    assert [task.name for task in left] == ["entry 0"]
    assert len(known) == 5
    left, _ = tasks_left(TASKS[:3], SweepWishes(tmp_path, resume=True, again=("checked",)))
    assert len(left) == 3


def test_a_part_by_name_or_tag_is_run_and_the_rest_stays(tmp_path: Path) -> None:
    tasks = [replace(TASKS[0], tags=("nightly",)), *TASKS[1:]]
    summary = sweep(SweepWishes(tmp_path, only="nightly|entry [12]$"), tasks)
    assert sorted(name for name, _ in summary.records) == ["entry 0", "entry 1", "entry 2"]
    summary = sweep(SweepWishes(tmp_path, resume=True, only="4"), tasks)
    assert (summary.ran, len(summary.records)) == (1, 4)
    for wishes, sentence in (
        (SweepWishes(tmp_path, only="nobody"), "--only `nobody` is found in no name and no tag, such as `entry 0`"),
        (None, "--only `(` is no regular expression: missing ), unterminated subpattern at position 0"),
    ):
        with pytest.raises(DeclarationError) as told:
            tasks_left(tasks, wishes or SweepWishes(tmp_path, only="("))
        assert str(told.value) == sentence


def test_shards_together_are_the_whole(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        sweep(SweepWishes(tmp_path, Shard(number, 3)))
    assert sorted(read_records(tmp_path)) == sorted(task.key for task in TASKS)


def test_an_engine_is_told_what_is_known(tmp_path: Path) -> None:
    sweep(SweepWishes(tmp_path), tasks=TASKS[:2])
    seen = []

    def noting(tasks, known):
        seen.append(sorted(known))
        return iter([TaskRecord(task.name, task.column, "refused", task.digest) for task in tasks])

    summary = sweep(SweepWishes(tmp_path, resume=True), engine=noting)
    assert seen == [[("entry 0", "small"), ("entry 1", "small")]]
    assert "small        2 checked, 4 refused" in str(summary)
