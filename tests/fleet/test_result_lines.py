from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from anyshape.errors import DeclarationError, SavingError
from anyshape.fleet.result_lines import (
    OUTCOMES,
    Journal,
    TaskRecord,
    journal_at,
    left_to_run,
    lines_path,
    merge_records,
    read_records,
)
from anyshape.fleet.tasks import Shard, Task

RECORD = TaskRecord("a", "anyshape", "checked", "d1", seconds=1.5, cpu_seconds=1.25, memory=10**8, tags=("vision",))
HOSTILE = TaskRecord(
    "</script>\n\u2028\x00 \U0001f600", "c\"'", "refused", cause="x\ny", details={"a": [1, {"b": None}]}
)


def test_a_record_is_one_line_and_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with journal_at(path) as journal:
        for record in (RECORD, HOSTILE):
            journal.append(record)
    assert path.read_bytes().count(b"\n") == 2
    assert read_records(path) == {RECORD.key: RECORD, HOSTILE.key: HOSTILE}


def test_an_outcome_is_as_bad_as_its_place_and_a_strange_one_worst() -> None:
    ranks = [replace(RECORD, outcome=outcome).rank for outcome in (*OUTCOMES, "something")]
    assert ranks == sorted(ranks)
    assert [replace(RECORD, outcome=outcome).is_good for outcome in OUTCOMES] == [True] * 3 + [False] * 6


@pytest.mark.parametrize("cut", range(1, len(RECORD.to_line()), 17))
def test_a_line_that_was_cut_is_no_result_and_does_not_spoil_the_next(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(RECORD.to_line() + replace(RECORD, name="b").to_line()[:cut])
    assert set(read_records(path)) == {("a", "anyshape")}
    with journal_at(path) as journal:
        journal.append(replace(RECORD, name="c"))
    assert set(read_records(path)) == {("a", "anyshape"), ("c", "anyshape")}
    assert [json.loads(line)["name"] for line in path.read_text().splitlines()] == ["a", "c"]


def test_a_whole_line_without_its_end_stays(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(RECORD.to_line()[:-1])
    with journal_at(path) as journal:
        journal.append(replace(RECORD, name="c"))
    assert [json.loads(line)["name"] for line in path.read_text().splitlines()] == ["a", "c"]


def test_what_is_no_number_is_a_text_in_a_line() -> None:
    line = replace(RECORD, details={"largest": float("nan"), "all": [float("-inf"), 1.0]}).to_line()
    found = json.loads(line, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert found["details"] == {"largest": "NaN", "all": ["-Infinity", 1.0]}


@pytest.mark.parametrize(
    "line", ["null", "[]", "3", "{}", '{"name": "x"}', '{"name":"x","column":"y","outcome":"z","seconds":"long"}',
             '{"name":"x","column":"y","outcome":"z","details":3}', "[" * 100_000,
             '{"name":"x","column":"y","outcome":"z","memory":1e999}']
)  # fmt: skip
def test_what_is_no_record_is_passed_over(tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(line.encode() + b"\n" + RECORD.to_line())
    assert read_records(path) == {RECORD.key: RECORD}


def test_the_newest_line_of_a_task_counts(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(RECORD.to_line() + replace(RECORD, outcome="refused").to_line())
    assert read_records(tmp_path)[RECORD.key].outcome == "refused"


def test_a_file_of_something_else_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\x08\x0a model")
    with pytest.raises(DeclarationError) as told:
        read_records(tmp_path / "model.onnx")
    assert str(told.value) == f"`{tmp_path}/model.onnx` holds no line of a sweep's"
    (tmp_path / "results.jsonl").write_bytes(b"")
    assert read_records(tmp_path) == {}


def test_no_results_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError) as told:
        read_records(tmp_path)
    assert str(told.value) == (
        f"there are no results in `{tmp_path}`: name a folder of a sweep, or a file of its lines"
    )


def test_one_process_writes_a_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    code = (
        "from pathlib import Path; from anyshape.fleet.result_lines import Journal\n"
        f"try: Journal(Path({str(path)!r}))\n"
        "except Exception as error: print(error)"
    )
    with journal_at(path):
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"another sweep is writing to `{path}`: wait for it, or name another folder\n"
    Journal(path).close()


def test_a_full_disk_is_one_sentence_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").symlink_to("/dev/full")
    with journal_at(tmp_path / "results.jsonl") as journal, pytest.raises(SavingError) as told:
        journal.append(RECORD)
    assert str(told.value) == f"`{tmp_path}/results.jsonl` cannot be written: No space left on device"


def test_results_are_not_merged_over_those_that_a_sweep_is_writing(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_bytes(RECORD.to_line())
    with journal_at(tmp_path / "results.jsonl"), pytest.raises(DeclarationError, match="another sweep is writing to"):
        merge_records([tmp_path], tmp_path / "results.jsonl")
    assert merge_records([tmp_path], tmp_path / "results.jsonl") == {RECORD.key: RECORD}


def test_what_has_a_result_for_the_same_options_is_not_run_again() -> None:
    tasks = [Task(name, "anyshape", "m:f", {"opset": 20}) for name in "abcd"]
    known = {task.key: TaskRecord(task.name, "anyshape", "checked", task.digest) for task in tasks[:3]}
    known["b", "anyshape"] = replace(known["b", "anyshape"], digest="of other options")
    known["c", "anyshape"] = replace(known["c", "anyshape"], outcome="timeout")
    assert [task.name for task in left_to_run(tasks, known)] == ["b", "d"]
    assert [task.name for task in left_to_run(tasks, known, ["timeout", "crashed"])] == ["b", "c", "d"]


def test_shards_write_files_of_their_own_that_are_read_as_one(tmp_path: Path) -> None:
    paths = [lines_path(tmp_path, Shard(number, 2)) for number in (1, 2)]
    assert [path.name for path in paths] == ["results-1-of-2.jsonl", "results-2-of-2.jsonl"]
    for path, name in zip(paths, "ab", strict=True):
        path.write_bytes(replace(RECORD, name=name).to_line())
    assert sorted(read_records(tmp_path)) == [("a", "anyshape"), ("b", "anyshape")]


def test_merged_results_are_one_file_with_a_line_for_each_task(tmp_path: Path) -> None:
    for folder, outcome in (("one", "refused"), ("two", "checked")):
        (tmp_path / folder).mkdir()
        lines_path(tmp_path / folder, Shard()).write_bytes(
            replace(RECORD, outcome=outcome).to_line() + replace(RECORD, name=folder).to_line()
        )
    merged = merge_records([tmp_path / "one", tmp_path / "two"], tmp_path / "all" / "results.jsonl")
    assert {key[0]: one.outcome for key, one in merged.items()} == {"a": "checked", "one": "checked", "two": "checked"}
    assert read_records(tmp_path / "all") == merged
    assert [path.name for path in (tmp_path / "all").iterdir()] == ["results.jsonl"]
    lines = (tmp_path / "all" / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["a", "one", "two"]
