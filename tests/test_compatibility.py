"""What docs/compatibility.md calls right is right, as far as the tools come with onnx and ONNX Runtime."""

from __future__ import annotations

import importlib
import json
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import onnx
import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
QUICK = ("encoder", "cnn", "loops")
KEPT = json.loads((FOLDER / "compatibility.json").read_text(encoding="utf-8"))["files"]


def _module(name: str) -> ModuleType:
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


TOOLS = _module("compatibility_tools")
AT_HAND = [tool.name for tool in TOOLS.TOOLS if tool.is_at_hand]
RIGHT = [
    pytest.param(file, tool, marks=() if file in QUICK and tool != ".ort conversion" else pytest.mark.slow)
    for file, row in KEPT.items()
    for tool, outcome in row.items()
    if tool in AT_HAND and outcome["outcome"] == "right"
]


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory):
    """A subject by its name, with the path of its file."""
    models = _module("compatibility_models")

    @cache
    def find(name):
        subject = next(subject for subject in models.SUBJECTS if subject.name == name)
        return subject, subject.write(tmp_path_factory.mktemp("files"), quick=True), models.calls_of(subject)

    return find


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("file", "tool"), RIGHT)
def test_what_the_page_calls_right_is_right(file: str, tool: str, subjects) -> None:
    subject, path, calls = subjects(file)
    found = TOOLS.outcome_of(TOOLS.BY_NAME[tool], path, calls, subject.ranked)
    assert found["outcome"] == "right", found


def test_every_fault_on_the_page_is_known_and_every_tool_is_there() -> None:
    tables = _module("compatibility_tables")
    for row in KEPT.values():
        assert list(row) == [tool.name for tool in TOOLS.TOOLS]
        wrong = {tool: outcome for tool, outcome in row.items() if outcome["outcome"] != "right"}
        assert [tool for tool, outcome in wrong.items() if tables.fault_of(tool, outcome) is None] == []


@pytest.mark.filterwarnings("ignore")
def test_a_result_that_differs_or_claims_another_shape_is_not_right(subjects) -> None:
    _, path, calls = subjects("cnn")

    def spoilt(change):
        def apply(case):
            model = onnx.load(case.path)
            change(model.graph)
            return TOOLS._saved(case, model)

        return TOOLS.outcome_of(TOOLS.Tool("spoilt", apply, "onnx"), path, calls)

    def shift(graph):
        node = next(node for node in graph.node if node.op_type == "Relu")
        node.op_type = "Abs"

    def claim(graph):
        graph.output[0].type.tensor_type.shape.dim[0].dim_value = 77

    assert spoilt(lambda graph: None)["outcome"] == "right"
    assert spoilt(shift)["outcome"] == "differs"
    assert "the result claims [77, 10]" in spoilt(claim)["error"]
