"""Names that differ over all graphs of a model: a copy has the names of its original, and ONNX forbids shadowing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import onnx_ir as ir

from anyshape.onnxfile.graph_graphs import graphs_in


def name_apart(model: ir.Model) -> None:
    """Name every value and node of the graph, and of the graphs inside it after these: `step/add_3`.

    The user's names of inputs and outputs, which come later, have no stroke in them.
    """
    graph = model.graph
    fixed = [*graph.inputs, *graph.outputs, *graph.initializers.values()]
    free = _names_apart_from({value.name for value in fixed if value is not None and value.name})
    _name(graph, "", free, _names_apart_from(set()), {id(value) for value in fixed})


def _name(
    graph: ir.Graph, prefix: str, value_name: Callable[[str], str], node_name: Callable[[str], str], fixed: set[int]
) -> None:
    for value in (*graph.inputs, *(value for node in graph for value in node.outputs)):
        if id(value) not in fixed:
            value.name = value_name(prefix + _last_part(value.name or "value"))
    for node in graph:
        node.name = node_name(prefix + _last_part(node.name or node.op_type))
        for inner in graphs_in(node):
            _name(inner, f"{inner.name}/", value_name, node_name, fixed)


def _last_part(name: str) -> str:
    return name.rpartition("/")[2]


def _names_apart_from(taken: set[str]) -> Callable[[str], str]:
    """A function that gives a name as it is, or with a number where it was given before."""
    numbers: dict[str, count[int]] = {}

    def name_apart_from_all(wanted: str) -> str:
        name = wanted
        while name in taken:
            name = f"{wanted}_{next(numbers.setdefault(wanted, count(1)))}"
        taken.add(name)
        return name

    return name_apart_from_all
