"""Figures for the nodes of a graph in Model Explorer, which lays them over its own picture of the file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.results.report.document import ReportDocument


def node_data(document: ReportDocument, what: str) -> dict[str, Any]:
    """The bytes that every node gives (`memory`), its `flops` or the bytes that it has `moved`, where they are known.

    At the sizes that the page's sliders begin at. A node is known by the name of its first output.
    """
    costs = document.costs
    if costs is None:
        raise DeclarationError("there is no file whose nodes could have figures: name a report in .html or in .json")
    sizes = {dim["name"]: dim["start"] for dim in costs["dims"]}
    numbers = _numbers(costs["expressions"], sizes)
    found = {}
    for node in costs["nodes"]:
        outputs = [costs["values"][place] for place in node["outputs"] if place >= 0]
        figure = _memory(outputs, numbers) if what == "memory" else _number(node[what], numbers)
        if outputs and figure is not None:
            found[outputs[0]["name"]] = {"value": figure}
    colours = [{"stop": 0, "bgColor": "#eef5fb"}, {"stop": 1, "bgColor": "#2c79b8"}]
    return {"results": found, "gradient": colours}


def _numbers(expressions: Sequence[Mapping[str, str]], sizes: Mapping[str, int]) -> list[int | None]:
    from anyshape.costs.written_formulas import WrittenFormula

    return [WrittenFormula(**one).value(sizes) for one in expressions]


def _number(place: int | None, numbers: Sequence[int | None]) -> int | None:
    return None if place is None else numbers[place]


def _memory(values: Sequence[Mapping[str, Any]], numbers: Sequence[int | None]) -> float | None:
    total: float = 0
    for value in values:
        axes = None if value["shape"] is None else [numbers[axis] for axis in value["shape"]]
        if axes is None or value["item"] is None or None in axes:
            return None
        total += value["item"] * math.prod(axis for axis in axes if axis is not None)
    return total
