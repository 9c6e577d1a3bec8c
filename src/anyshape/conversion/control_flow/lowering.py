"""From the marks of a straight trace to control flow: branches become If, loops become Scan or Loop."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from anyshape.conversion.control_flow.ifs import join_groups, lower_branches, share_common_parts
from anyshape.conversion.control_flow.marks import DOMAIN, RegionError, is_mark
from anyshape.conversion.control_flow.scans import Lengths, lengths_of, lower_loops
from anyshape.onnxfile.graph import every_node, graphs_in

__all__ = ["RegionError", "lower_regions"]


def lower_regions(model: ir.Model) -> None:
    """Replace all marks in a model; one without marks is left as it is."""
    if not any(is_mark(node) for node in every_node(model.graph)):
        return
    share_common_parts(model)
    join_groups(model.graph)
    _lower_graph(model.graph, lengths_of(model.graph.inputs))
    _refuse_leftovers(model)
    RemoveUnusedNodesPass()(model)  # constants that only a mark needed
    name_apart(model)
    model.opset_imports.pop(DOMAIN, None)


def _lower_graph(graph: ir.Graph, lengths: Lengths) -> None:
    """Branches first: a loop in a branch goes there whole, and a branch in a loop is then one node of its body."""
    inner = [*lower_branches(graph), *lower_loops(graph, lengths)]
    for body in inner:
        _lower_graph(body, lengths)


def _refuse_leftovers(model: ir.Model) -> None:
    for node in every_node(model.graph):
        if is_mark(node):
            raise RegionError(f"{node.op_type} is left, its other end is not in the same branch or loop")


# ---- names that differ over all graphs of a model: a copy has those of its original, and ONNX forbids shadowing


def name_apart(model: ir.Model) -> None:
    """Name every value and node of the graph, and of the graphs inside it after these: `step/add_3`.

    The user's names of inputs and outputs, which come later, have no stroke in them.
    """
    graph = model.graph
    fixed = [*graph.inputs, *graph.outputs, *graph.initializers.values()]
    free = _names_apart_from({value.name for value in fixed if value is not None and value.name})
    _name_all_in(graph, "", free, _names_apart_from(set()), {id(value) for value in fixed})


def _name_all_in(
    graph: ir.Graph, prefix: str, value_name: Callable[[str], str], node_name: Callable[[str], str], fixed: set[int]
) -> None:
    for value in (*graph.inputs, *(value for node in graph for value in node.outputs)):
        if id(value) not in fixed:
            value.name = value_name(prefix + _last_part(value.name or "value"))
    for node in graph:
        node.name = node_name(prefix + _last_part(node.name or node.op_type))
        for inner in graphs_in(node):
            _name_all_in(inner, f"{inner.name}/", value_name, node_name, fixed)


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
