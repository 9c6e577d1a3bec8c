from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anyshape.errors import DeclarationError
from anyshape.fleet.local_engine import run_here
from anyshape.fleet.result_lines import TaskRecord, read_records
from anyshape.fleet.sweep_run import SweepWishes, opened_sweep
from anyshape.fleet.tasks import Shard, Task

TASKS = [Task(f"entry {n}", "small", "tests.fleet.work:fine", {"value": n}) for n in range(6)]


def engine(tasks, known):
    return run_here(tasks, 2)


def sweep(wishes: SweepWishes, tasks=TASKS, show=lambda record: None, engine=engine):
    with opened_sweep(tasks, wishes) as opened:
        return opened.run(engine, show)


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
    assert (tmp_path / "results.html").read_text().count('data-name="entry ') == 2
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
    with opened_sweep(changed, SweepWishes(tmp_path, resume=True)) as opened:
        assert [task.name for task in opened.left] == ["entry 0"]
        assert len(opened.known) == 5
    with opened_sweep(TASKS[:3], SweepWishes(tmp_path, resume=True, again=("checked",))) as opened:
        assert len(opened.left) == 3


def test_what_is_left_is_asked_when_nobody_else_can_write(tmp_path: Path) -> None:
    """A second sweep that was waiting for its collection must not run again what the first has done meanwhile."""

    def read_slowly():
        sweep(SweepWishes(tmp_path))
        yield from TASKS

    summary = sweep(SweepWishes(tmp_path, resume=True), tasks=read_slowly())
    assert (summary.ran, len(summary.records)) == (0, 6)
    with opened_sweep(TASKS, SweepWishes(tmp_path, resume=True)), pytest.raises(DeclarationError) as told:
        sweep(SweepWishes(tmp_path, resume=True))
    assert str(told.value).startswith(f"another sweep is writing to `{tmp_path}/results.jsonl`: ")


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
            sweep(wishes or SweepWishes(tmp_path, only="("), tasks)
        assert str(told.value) == sentence


def test_results_of_other_columns_stay_on_the_page_as_they_stay_in_the_lines(tmp_path: Path) -> None:
    sweep(SweepWishes(tmp_path))
    summary = sweep(SweepWishes(tmp_path, resume=True), [replace(TASKS[0], column="other")])
    assert str(summary).startswith(
        "swept: 7 results, 6 of them earlier\n  small        6 checked\n  other        1 checked"
    )
    assert (tmp_path / "results.html").read_text().count('data-outcome="checked"') == 7
    assert sorted(read_records(tmp_path)) == sorted(summary.records)


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
