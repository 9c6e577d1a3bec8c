"""A table of operators is built once; each export may add to its own."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from anyshape.conversion.speed import operator_table as tables
from anyshape.conversion.speed import switch
from anyshape.conversion.speed.operator_table import register_fake
from anyshape.torchkit.private_names import lookup


class Table:
    def __init__(self, opset_version: int = 0) -> None:
        self.opset, self.functions = opset_version, {"relu": ["torch's"]}


@pytest.fixture(autouse=True)
def _none_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_TABLES", {})


def _complete(table: Any) -> None:
    table.functions.setdefault("ours", [])


def test_what_one_export_adds_no_other_sees() -> None:
    first, second = (tables.operator_table(Table, 20, _complete) for _ in range(2))
    first.functions["relu"].append("the user's")
    assert second.functions == {"relu": ["torch's"], "ours": []}
    assert tables.kept_table(Table, 20, _complete).functions == second.functions
    assert tables.operator_table(Table, None, _complete).opset == 0


@pytest.mark.parametrize(("value", "count"), [("0", 2), ("1", 1)])
def test_it_is_built_once_unless_shortcuts_are_off(value: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    monkeypatch.setenv(switch.VARIABLE, value)
    for _ in range(2):
        tables.operator_table(lambda opset_version: built.append(opset_version) or Table(), 20, _complete)
    assert built == [20] * count


def test_a_table_without_sources_knows_the_operators_of_one_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    build = lookup("torch.onnx._internal.exporter._registration.ONNXRegistry.from_torchlib")
    unread = tables.operator_table(build, 20, lambda _table: None)
    monkeypatch.setenv(switch.VARIABLE, "0")
    read = tables.operator_table(build, 20, lambda _table: None)
    assert unread.functions.keys() == read.functions.keys()
    assert [len(known) for known in unread.functions.values()] == [len(known) for known in read.functions.values()]


# ---- shapes of our own operators

LIBRARY = torch.library.Library("anyshape_registered", "FRAGMENT")


@pytest.mark.parametrize(("value", "searches"), [("1", False), ("0", True)])
def test_an_operator_has_its_shapes(value: str, searches: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    original = inspect.getmodule
    monkeypatch.setattr(inspect, "getmodule", lambda *args: asked.append(args) or original(*args))
    monkeypatch.setenv(switch.VARIABLE, value)
    LIBRARY.define(f"rows_{value}(Tensor x) -> Tensor")
    register_fake(f"anyshape_registered::rows_{value}", lambda x: x.new_empty(x.shape[0]), LIBRARY)
    assert bool(asked) is searches
    operator = getattr(torch.ops.anyshape_registered, f"rows_{value}")
    assert operator(torch.empty(3, 4, device="meta")).shape == (3,)
