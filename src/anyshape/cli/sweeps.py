"""`anyshape sweep`: the tasks of a collection, its engine, and what is printed; `merge` and `compare` beside it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from anyshape.cli import entry_jobs
from anyshape.errors import DeclarationError
from anyshape.fleet.collection import CollectedEntry, SweptCollection, read_collection
from anyshape.fleet.comparison import SweepComparison, compare_records
from anyshape.fleet.local_engine import run_here, run_one, usual_jobs
from anyshape.fleet.option_sets import OptionSet, columns_for, parse_columns
from anyshape.fleet.result_lines import OUTCOMES, lines_path, merge_records, read_records
from anyshape.fleet.sweep_bar import shown_sweep
from anyshape.fleet.sweep_run import Engine, SweepSummary, SweepWishes, opened_sweep
from anyshape.fleet.table_page import bring_reports, write_page
from anyshape.fleet.tasks import Shard, Task, TaskLimits, parse_shard
from anyshape.onnxfile.destination import check_writable, refuse_foreign
from anyshape.sizes import budgets
from anyshape.sizes.notation import did_you_mean

JOBS = "anyshape.cli.entry_jobs"


def sweep_collection(collection: str, output: str, options: Mapping[str, Any]) -> SweepSummary:
    """The whole way from a collection to its results."""
    folder = _folder_at(output)
    # a variable of a shell that is not set must not mean all
    shard = parse_shard("1/1" if options["shard"] is None else options["shard"])
    again = _outcomes(options["again"])
    wishes = SweepWishes(folder, shard, options["resume"], again, options["only"] or "")
    limits = TaskLimits.of(options["seconds"], options["gigabytes"])
    found = read_collection(Path(_given_text(collection, "the collection")), partial(_listed_models, limits=limits))
    columns = parse_columns(options["by"], options["columns"]) or found.columns
    threads = max(1, usual_jobs() // jobs_of(options))
    found_tasks = tasks_of(found, columns, folder, keeps_files=options["keep"])
    tasks = [replace(task, limits=limits, threads=threads) for task in found_tasks]
    engine = engine_of(options)
    with opened_sweep(tasks, wishes) as sweep, shown_sweep(sys.stderr, len(sweep.left), quiet=options["quiet"]) as show:
        return sweep.run(engine, show)


def _folder_at(output: str) -> Path:
    refuse_foreign(_given_text(output, "the folder of results"))
    check_writable(folder := Path(output).absolute())
    return folder


def _given_text(text: str, what: str) -> str:
    """A variable of a shell that is not set does not mean the current folder."""
    if not text.strip():
        raise DeclarationError(f"{what} is `{text}`: give its name, such as `.` for the current folder")
    return text


def _outcomes(again: Sequence[str]) -> tuple[str, ...]:
    for outcome in again:
        if outcome not in OUTCOMES:
            raise DeclarationError(f"--again `{outcome}` is no outcome{did_you_mean(outcome, OUTCOMES)}")
    return tuple(again)


def jobs_of(options: Mapping[str, Any]) -> int:
    return int(options["jobs"] or usual_jobs())


def engine_of(options: Mapping[str, Any]) -> Engine:
    """Where tasks run: here, or on a cluster."""
    if options["engine"] == "ray":
        from anyshape.fleet.ray_engine import run_on_ray

        return lambda tasks, known: run_on_ray(tasks, known, options["address"])
    if options["address"]:
        raise DeclarationError("--address is a cluster's: give --engine ray, too")
    return lambda tasks, _known: run_here(tasks, jobs_of(options))


def _listed_models(place: Path, limits: TaskLimits) -> Mapping[str, Any]:
    """What a Python file yields, asked of a process of its own: it may hang, or end Python."""
    # an entry may be given less than it takes to name them all
    limits = replace(limits, seconds=max(limits.seconds, budgets.SECONDS_OF_A_TASK))
    record = run_one(Task(place.name, "models", f"{JOBS}:list_models", {"place": str(place)}, limits))
    if record.outcome != "checked":
        cause = record.cause.removeprefix("DeclarationError: ")
        raise DeclarationError(cause if record.outcome == "defect" else f"`{place}` cannot be listed: {cause}")
    return record.details


# ---- tasks


def tasks_of(
    collection: SweptCollection, columns: Sequence[OptionSet], folder: Path, *, keeps_files: bool
) -> Iterator[Task]:
    """Every entry in every column that serves it."""
    for column in columns:
        if not any(column.serves(entry.kind) for entry in collection.entries):
            raise DeclarationError(
                f"the column `{column.name}` is by `{column.by}`, which serves no entry of this collection, such as "
                f"`{collection.entries[0].name}`"
            )
    for entry in collection.entries:
        for column in columns_for(entry.kind, columns):
            yield _task_of(entry, column, folder, keeps_files=keeps_files)


def _task_of(entry: CollectedEntry, column: OptionSet, folder: Path, *, keeps_files: bool) -> Task:
    entry_jobs.check_options(column.by, entry.kind, column.options, f"the column `{column.name}`")
    known = {*entry_jobs.OPTIONS[column.by], *entry_jobs.CHECKPOINT_OPTIONS}
    entry_jobs.refuse_strange_options(entry.options, f"the entry `{entry.name}`")
    # an entry's options are for all columns: one that torch does not know is not for torch
    options = {**column.options, **{name: value for name, value in entry.options.items() if name in known}}
    arguments: dict[str, Any] = {"options": options}
    written = entry_jobs.written_names(folder, entry.name, column.name, keeps_files=keeps_files)
    place = str(entry.place)
    match entry.kind:
        case "model":
            job, arguments = "run_model", arguments | {"place": place, "model": entry.said["model"], "by": column.by}
        case "target":
            job, arguments = "run_target", arguments | {"said": dict(entry.said), "by": column.by}
        case "checkpoint":
            job, arguments = "run_checkpoint", arguments | {"place": place, "said": dict(entry.said)}
        case "onnx":
            job, arguments = "run_file", arguments | {"place": place, "said": dict(entry.said), "by": column.by}
    return Task(entry.name, column.name, f"{JOBS}:{job}", arguments, tags=entry.tags, written=written)


# ---- what is done with results


def merge_results(places: Sequence[str], output: str) -> SweepSummary:
    folder = _folder_at(output)
    lines = lines_path(folder, Shard())
    merged = merge_records(map(Path, places), lines)
    for place in map(Path, places):
        bring_reports(place if place.is_dir() else place.parent, folder, merged.values())
    page = lines.with_suffix(".html")
    write_page(page, merged.values())
    return SweepSummary(merged, lines, page, ran=len(merged))


def compare_results(old: str, new: str) -> SweepComparison:
    found = [read_records(Path(_given_text(place, "what is to be compared"))) for place in (old, new)]
    for place, records in zip((old, new), found, strict=True):
        if not records:
            raise DeclarationError(f"the sweep in `{place}` has no result yet: there is nothing to compare")
    return compare_records(*found)
