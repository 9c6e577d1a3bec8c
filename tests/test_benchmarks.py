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
