"""`anyshape check --grid`: every declared size of one file, in many processes; and what each of these does."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from anyshape.cli import preflight, tasks
from anyshape.cli.sweeps import engine_of, jobs_of
from anyshape.cli.target_texts import read_target
from anyshape.errors import DeclarationError
from anyshape.fleet.size_grid import GridResult, dealt, sizes_of_grid
from anyshape.fleet.sweep_bar import shown_sweep
from anyshape.fleet.tasks import Task, TaskLimits
from anyshape.results.result import ExportError
from anyshape.sizes import budgets
from anyshape.sizes.notation import InputText, Sizes

_GIVEN = ("dims", "sizes", "weights", "seed", "where", "custom_ops", "atol", "rtol", "trusted")


def check_grid(model: str, target: str | None, options: Mapping[str, Any]) -> GridResult:
    """The whole way from a file to the verdict about its sizes."""
    preflight.ask_file(model)
    preflight.ask_declaration(options)
    if target is not None:
        preflight.ask_target(target, options)
    sizes, declared = _sizes_to_run(model, options)
    given = {name: options[name] for name in _GIVEN} | {"inputs": [asdict(one) for one in options["inputs"]]}
    arguments = {"model": str(Path(model).absolute()), "target": _whole_target(target), "given": given}
    is_cluster = options["engine"] == "ray" and not options["jobs"]
    hands = dealt(sizes, budgets.WORKERS_OF_A_CLUSTER if is_cluster else jobs_of(options))
    rows = [
        Task(f"sizes {number}", "grid", "anyshape.cli.grids:run_sizes", {**arguments, "sizes": hand}, _limits_of(hand))
        for number, hand in enumerate(hands, 1)
    ]
    with shown_sweep(sys.stderr, len(rows), quiet=options["quiet"]) as show:
        records = []
        for record in engine_of(options)(rows, {}):
            records.append(record)
            show(record)
    return GridResult(Path(model).name, len(sizes), declared, records)


def _limits_of(hand: Sequence[Sizes]) -> TaskLimits:
    """Of a large model, a single size takes longer than all of a small one."""
    return TaskLimits(max(budgets.SECONDS_OF_A_TASK, budgets.SECONDS_OF_A_SIZE_OF_A_GRID * len(hand)))


def _whole_target(target: str | None) -> str | None:
    """The processes of tasks may start elsewhere."""
    if target is None or not (named := read_target(target)).is_file:
        return target
    return f"{Path(named.place).absolute()}{target[len(named.place) :]}"


def _sizes_to_run(model: str, options: Mapping[str, Any]) -> tuple[list[Sizes], int]:
    """The sizes that the file declares, or the command line for it; and how many there are in all."""
    from anyshape.verification.given_file import declare_by_file, read_given_file

    declared = declare_by_file(read_given_file(model), options["sizes"] or None, options["where"], options["seed"] or 0)
    if not declared.ranges:
        raise DeclarationError(f"`{Path(model).name}` has no dims: it has one size, which a plain check runs")
    share = 1.0 if options["share"] is None else options["share"]
    return sizes_of_grid(declared.ranges, (*declared.where, *declared.held), share)


# ---- in the process of a task


def run_sizes(
    tell: Any, model: str, target: str | None, given: Mapping[str, Any], sizes: Sequence[Mapping[str, int]]
) -> dict[str, Any]:
    """Some sizes of one file, with the model loaded once."""
    from anyshape.verbs.check import check

    tell("loading")
    chosen = {"atol": given["atol"], "rtol": given["rtol"], "seed": given["seed"] or 0}
    told: dict[str, Any] = {"right": 0, "refused": 0, "failures": []}
    if target is None:
        said = {"sizes": given["sizes"] or None, "where": given["where"], "custom_ops": given["custom_ops"]}
        for one in sizes:
            _count(told, one, lambda at: check(model, at=at, trusted=given["trusted"], **said, **chosen))
        return _with_outcome(told)
    options = {**given, "inputs": [InputText(**one) for one in given["inputs"]]}
    with tasks.loaded_call(read_target(target), options, tasks.ports_of(model)) as (loaded, call):
        said = {**call.arguments, **chosen, **tasks.said_twice(loaded, options)}
        tell("checking")
        for one in sizes:
            _count(told, one, lambda at: check(model, loaded.model, at=at, **said))
    return _with_outcome(told)


def _count(told: dict[str, Any], sizes: Mapping[str, int], run: Any) -> None:
    try:
        verification = run(dict(sizes)).verification
    except ExportError as error:
        finding = next(iter(error.result.findings), None)
        cause = error.result.headline if finding is None else f"{finding.rule}: {finding.message}"
        told["failures"].append({"sizes": dict(sizes), "cause": cause})
        return
    told["right" if verification is not None and verification.sizes_run else "refused"] += 1


def _with_outcome(told: dict[str, Any]) -> dict[str, Any]:
    return {"outcome": "wrong" if told["failures"] else "checked", **told}
