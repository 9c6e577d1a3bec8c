"""The benchmarks find what they measure: each can be started, and stages are timed where they are called."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import sys
from pathlib import Path

import pytest
import torch

import anyshape
from anyshape.cli.entry_jobs import run_model
from anyshape.fleet.result_lines import TaskRecord

FOLDER = Path(__file__).parent.parent / "benchmarks"
FILES = sorted(FOLDER.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_what_a_benchmark_takes_from_the_package_is_there(path: Path) -> None:
    """Read, not imported: some need libraries that the tests do without."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "anyshape":
            module = importlib.import_module(node.module)
            for alias in node.names:
                found = hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}")
                assert found, f"{node.module} has no {alias.name}"


def _names_of(path: Path) -> set[str]:
    """What a module defines or imports at its top."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        found |= {one.asname or one.name for one in getattr(node, "names", ()) if isinstance(one, ast.alias)}
        targets = [*getattr(node, "targets", ()), getattr(node, "target", None)]
        found |= {one.id for target in targets if target for one in ast.walk(target) if isinstance(one, ast.Name)}
        found |= {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_what_benchmarks_take_from_each_other_is_there(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        home = FOLDER / f"{(node.module or '').replace('.', '/')}.py" if isinstance(node, ast.ImportFrom) else None
        if home is not None and home.exists():
            assert {alias.name for alias in node.names} <= _names_of(home), f"{home.name} lacks what {path.name} takes"


def test_every_stage_of_the_check_is_timed(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    export_time = importlib.import_module("export_time")

    class Double(torch.nn.Module):
        """Both sides are the same: the file is right beyond what its trace assumed, so that all stages are needed."""

        def forward(self, x):
            return x * 2 if x.shape[0] > 2 else x + x

    with contextlib.ExitStack() as stack:
        seconds = {name: stack.enter_context(export_time.stopwatch(home, name)) for home, name in export_time.CHECKING}
        anyshape.export(Double(), torch.ones(3), None, dims={"x": "n"}, quick=True)
    for name in ("export_time", "silence", "figures", "goals"):
        sys.modules.pop(name)
    assert [name for name, runs in seconds.items() if not runs] == []


@pytest.mark.parametrize("opset", [11, 13, 17, 24])
@pytest.mark.parametrize("name", ["mlp", "chunk", "encoder layer", "causal attention", "reductions", "scatter add"])
def test_an_opset_that_is_asked_for_is_delivered_or_refused(name: str, opset: int, tmp_path: Path, monkeypatch) -> None:
    """A short form of benchmarks/opsets.py; the whole table stands in docs/opsets.md."""
    monkeypatch.syspath_prepend(str(FOLDER))
    benchmark = importlib.import_module("opsets")
    (kind,) = (kind for kind in benchmark.kinds() if kind.name == name)
    needed = {("scatter add", 11), ("scatter add", 13)}
    expected = "`ScatterElements` needs 16" if (name, opset) in needed else benchmark.DELIVERED
    assert benchmark.told(kind, opset, tmp_path) == expected


# ---- what is kept, and what is aimed at


@pytest.fixture
def benchmark(monkeypatch):
    """A module of the benchmarks by its name, imported anew."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(FOLDER)):
            del sys.modules[name]


def _run(commit: str, code: str) -> dict:
    return {"date": "2026-11-18", "versions": {"torch": "2"}, "commit": commit, "code": code, "machine": "2 cores"}


def test_a_row_stands_with_the_run_that_measured_it(tmp_path: Path, benchmark, monkeypatch) -> None:
    figures, place = benchmark("figures"), tmp_path / "some.json"
    moments = iter(["first", "second", "third"])
    monkeypatch.setattr(figures.time, "strftime", lambda *_: next(moments))
    figures.keep(place, {"rows": {"a": {"seconds": 1}, "b": {"seconds": 2}}}, _run("c1", "x"))
    figures.keep(place, {"rows": {"b": {"seconds": 3}}}, _run("c2", "y"))
    kept = figures.read(place)
    assert [(name, row["seconds"]) for name, row in kept.table("rows").items()] == [("a", 1), ("b", 3)]
    assert kept.measured("rows") == (
        "Measured a on 2026-11-18 (commit c1; 2 cores); b on 2026-11-18 (commit c2; 2 cores), with torch 2."
    )
    assert kept.outdated("y") == ["rows: a"]
    figures.keep(place, {"rows": {"a": {"seconds": 4}}}, _run("", ""))
    kept = figures.read(place)
    assert list(kept.runs) == ["second", "third"], "a run without a row is gone"
    assert "a on 2026-11-18 (entered by hand; 2 cores)" in kept.measured("rows")


def test_the_hash_of_the_code_is_of_all_its_files(tmp_path: Path, benchmark) -> None:
    code_of, place = benchmark("figures").code_of, tmp_path / "inner" / "module.py"
    place.parent.mkdir()
    place.write_text("x = 1")
    before = code_of(tmp_path)
    assert before == code_of(tmp_path)
    place.write_text("x = 2")
    assert code_of(tmp_path) != before
    place.rename(place.with_name("other.py"))
    assert code_of(tmp_path) != before


def test_a_goal_is_met_or_missed_by_name(benchmark) -> None:
    goals, figures = benchmark("goals"), benchmark("figures")
    goal = goals.Goal("some", "a ratio", 0.5, lambda kept: kept.table("rows"))
    assert goal.verdict({}) == "not measured"
    assert goal.verdict({"a": 0.5, "b": 0.1}) == "met"
    assert goal.verdict({"a": 0.501, "b": 0.1, "c": 2.0}) == "missed by 2 of 3: c 2.00, a 0.501"
    assert goal.verdict({str(n): 1.0 + n for n in range(9)}).endswith("and 3 more")
    slow = {"trace": 1.0, "torch": 10.0, "whole": 7.0, "check": 5.0, "sizes": 9, "forced_by": []}
    told = goals.report("export_time", {"exports": {"resnet18": slow}})
    assert "0.20           at most 0.33  conversion in units of torch's time: met" in told
    assert "torch's time, which checks nothing: missed by 1 of 1: resnet18 0.70" in told
    assert [one.text for one in goals.GOALS if not figures.place_of(one.benchmark).exists()] == []


def test_every_goal_says_something_of_the_kept_figures(benchmark) -> None:
    assert [goal.text for goal in benchmark("goals").GOALS if not goal.found] == []


# ---- the collections


@pytest.mark.parametrize(
    ("outcome", "stage", "expected"),
    [
        ("checked", "", "verified"), ("refused", "", "refused"), ("wrong", "", "wrong"), ("defect", "", "defect"),
        ("timeout", "converting", "refused"), ("crashed", "judging", "wrong"), ("out-of-memory", "loading", "defect"),
    ],
)  # fmt: skip
def test_what_a_sweep_says_is_an_outcome_of_coverage(outcome: str, stage: str, expected: str, benchmark) -> None:
    tables = benchmark("coverage_tables")
    cpu = {"loading": 5.0, "converting": 0.25, "checking": 0.5, "reporting": 7.0, "judging": 9.0}
    record = TaskRecord("db.a", "anyshape", outcome, stage=stage, cause="in /some/place/file.py", details={"cpu": cpu})
    row = tables.row_of(record)
    assert row == {"outcome": expected, "seconds": 0.75, "converting": 0.25, "cause": "in file.py"}


def test_what_a_sweep_says_is_an_outcome_of_operators(benchmark) -> None:
    result_of = benchmark("operator_tables").result_of
    off = {"judged": {"contents": {"one NaN": "1.0 for nan"}}}
    found = [
        result_of(TaskRecord("abs float32 0", column, outcome, cause=cause, details=details))["outcome"]
        for column, outcome, cause, details in (
            ("torch", "checked", "", {}), ("torch", "checked", "", off), ("torch", "wrong", "1 for 2", {}),
            ("torch", "wrong", "no kernel", {"judged": {"opens": "no"}}), ("torch", "refused", "no", {}),
            ("torch", "timeout", "late", {}), ("torch", "defect", "?", {}), ("anyshape", "defect", "?", {}),
        )
    ]  # fmt: skip
    assert found == ["right", "values", "wrong", "refused", "refused", "died", "no sample", "refused"]


@pytest.mark.slow
@pytest.mark.parametrize(("by", "outcome"), [("anyshape", "checked"), ("torch", "wrong")])
def test_an_entry_of_coverage_is_judged_by_its_own_judge(by: str, outcome: str) -> None:
    place = str(FOLDER / "coverage.py")
    told = run_model(lambda stage: None, place, "nn.adaptive_avg_pool1d 4", by, {}, {})
    assert told["outcome"] == outcome, told
    assert "judging" in told["cpu"]
    assert outcome == "checked" or told["cause"].startswith("at 3 of 4 sizes, first batch=1")
