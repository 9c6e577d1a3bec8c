"""From the marks of a straight trace to control flow: branches become If, loops become Scan or Loop."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from anyshape.conversion.control_flow.ifs import join_groups, lower_branches
from anyshape.conversion.control_flow.ifs_sinking import share
from anyshape.conversion.control_flow.lowering_naming import name_apart
from anyshape.conversion.control_flow.marks_marks import DOMAIN, RegionError, is_mark
from anyshape.conversion.control_flow.scans import Lengths, lengths_of
from anyshape.conversion.control_flow.scans_loops import lower_loops

__all__ = ["RegionError", "lower_regions"]


def lower_regions(model: ir.Model) -> None:
    """Replace all marks in a model; one without marks is left as it is."""
    if not any(is_mark(node) for node in ir.traversal.RecursiveGraphIterator(model.graph)):
        return
    share(model)
    join_groups(model.graph)
    _lower(model.graph, lengths_of(model.graph.inputs))
    _refuse_leftovers(model)
    RemoveUnusedNodesPass()(model)  # constants that only a mark needed
    name_apart(model)
    model.opset_imports.pop(DOMAIN, None)


def _lower(graph: ir.Graph, lengths: Lengths) -> None:
    """Branches first: a loop in a branch goes there whole, and a branch in a loop is then one node of its body."""
    inner = [*lower_branches(graph), *lower_loops(graph, lengths)]
    for body in inner:
        _lower(body, lengths)


def _refuse_leftovers(model: ir.Model) -> None:
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        if is_mark(node):
            raise RegionError(f"{node.op_type} is left, its other end is not in the same branch or loop")
