"""Pictures inside of pictures, with a place for everything."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from anyshape.costs.file_costs import FileCosts, Growth, NodeCosts
from anyshape.results.report.graph_layout import graph_document
from anyshape.sizes import budgets


def _costs(*rows: tuple[str, tuple[int, ...], str]) -> FileCosts:
    """Each node makes the value of its own number; `rows` are operator, values read, and scope."""
    nodes = [
        NodeCosts(f"n{place}", op, given, (place,), None, None, tuple(scope.split("/")) if scope else ())
        for place, (op, given, scope) in enumerate(rows)
    ]
    return FileCosts((), (), (), (), tuple(nodes), (), (), 0, (), Growth(None, None, None, None))


def _named(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {group["title"] or "root": group for group in document["groups"]}


def _nodes_in(document: dict[str, Any], place: int) -> list[int]:
    items = document["groups"][place]["items"]
    return [n for item in items for n in ([item["node"]] if "node" in item else _nodes_in(document, item["group"]))]


SMALL = _costs(
    ("Gather", (-1,), "embed"), ("MatMul", (0,), "net/attention"), ("Softmax", (1,), "net/attention"),
    ("Add", (0, 2), "net"), ("Relu", (3,), ""),
)  # fmt: skip


def test_modules_are_groups_and_each_shows_only_what_stands_in_it() -> None:
    document = graph_document(SMALL)
    groups = _named(document)
    assert list(groups) == ["root", "embed", "net", "net.attention"]
    assert groups["root"]["items"] == [{"group": 1}, {"group": 2}, {"node": 4}]
    assert [edge[:2] for edge in groups["root"]["edges"]] == [[0, 1], [1, 2]]
    assert groups["net"]["items"] == [{"group": 3}, {"node": 3}]
    assert [edge[:2] for edge in groups["net"]["edges"]] == [[0, 1]]
    assert sorted(_nodes_in(document, document["root"])) == list(range(5))


def test_boxes_do_not_overlap_and_what_is_read_stands_above() -> None:
    rows = [("Add", tuple({max(place - 1, 0), place // 2, place // 3} - {place}), "") for place in range(40)]
    (group,) = graph_document(_costs(*rows))["groups"]
    boxes = group["boxes"]
    for place, (x, y, w, h) in enumerate(boxes):
        assert 0 <= x <= x + w <= group["width"]
        assert 0 <= y <= y + h <= group["height"]
        for to_x, to_y, to_w, to_h in boxes[:place]:
            assert x >= to_x + to_w or to_x >= x + w or y >= to_y + to_h or to_y >= y + h
    for one, other, line in group["edges"]:
        assert boxes[one][1] < boxes[other][1]
        assert line[0] == [boxes[one][0] + boxes[one][2] // 2, boxes[one][1] + boxes[one][3]]
        assert line[-1] == [boxes[other][0] + boxes[other][2] // 2, boxes[other][1]]


def test_layers_that_are_alike_stand_in_one_box() -> None:
    rows = [
        (op, (2 * layer + step - 1,), f"net/layer.{layer}")
        for layer in range(6)
        for step, op in enumerate(("MatMul", "Relu"))
    ]
    groups = _named(graph_document(_costs(*rows, ("Add", (11,), "net"))))
    assert (groups["6 alike"]["name"], groups["6 alike"]["kind"]) == ("layer.0 ... layer.5", "repeated")
    assert len(groups["6 alike"]["items"]) == 6
    assert len(groups["net"]["items"]) == 2


def test_a_module_that_holds_one_module_is_one_with_it() -> None:
    groups = _named(graph_document(_costs(("Relu", (-1,), "a/b/c"), ("Relu", (0,), "a/b/c"), ("Exp", (1,), ""))))
    assert [(group["name"], len(group["items"])) for group in groups.values()] == [("", 2), ("a.b.c", 2)]


def test_modules_that_need_each_other_are_drawn_too() -> None:
    rows = [("Relu", (-1,), "a"), ("Relu", (0,), "b"), ("Relu", (1,), "a"), ("Relu", (2,), "b")]
    root = graph_document(_costs(*rows))["groups"][0]
    assert [edge[:2] for edge in root["edges"]] == [[0, 1], [1, 0]]
    assert root["edges"][0][2] == root["edges"][1][2][::-1]


def test_a_graph_without_modules_is_cut_into_parts() -> None:
    document = graph_document(_costs(*(("Add", (place - 1,), "") for place in range(1000))))
    assert max(len(group["items"]) for group in document["groups"]) <= budgets.MOST_BOXES_OF_A_PICTURE
    assert _nodes_in(document, 0) == list(range(1000))


def test_the_same_file_gives_the_same_bytes_in_every_process() -> None:
    code = (
        "import json, hashlib\nfrom tests.results.report.test_graph_layout import SKEWED\n"
        "from anyshape.results.report.graph_layout import graph_document\n"
        "print(hashlib.sha256(json.dumps(graph_document(SKEWED)).encode()).hexdigest())"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    }
    assert len(runs) == 1


SKEWED = _costs(*(("Add", (max(place - 7, -1), place // 2 - 1, place - 1), f"m{place % 3}") for place in range(150)))


@pytest.mark.slow
def test_two_thousand_nodes_are_laid_out_in_seconds_and_are_little() -> None:
    rows = [
        ("MatMul", (place - 1, place - 2 - place % 5), f"net/layer.{place // 50}/part.{place // 10 % 5}")
        for place in range(2000)
    ]
    start = time.monotonic()
    document = graph_document(_costs(*rows))
    assert time.monotonic() - start < 10
    assert len(json.dumps(document, separators=(",", ":"))) < 250_000


def test_an_empty_file_is_an_empty_picture() -> None:
    assert graph_document(_costs())["groups"] == [
        {"name": "", "title": "", "kind": "group", "items": [], "boxes": [], "edges": [], "width": 0, "height": 0}
    ]
