"""A model of one's own to change: cloned without its weights, functions inlined, in order, and sound enough to walk."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass, LiftConstantsToInitializersPass, RemoveUnusedNodesPass

from anyshape.errors import AnyshapeError
from anyshape.onnxfile.graph import graphs_in
from anyshape.sizes import budgets

# it warns of every operator that it does not know, which the walk copes with
logging.getLogger("onnx_shape_inference").setLevel(logging.ERROR)


def prepared(model: ir.Model) -> ir.Model:
    """A clone that shares the weights; whatever cannot be walked is refused in one sentence."""
    _refuse_unsound(model.graph)
    try:
        clone = model.clone()
        if clone.functions:
            InlinePass()(clone)
        clone.graph.sort()
        LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(clone)
        RemoveUnusedNodesPass()(clone)
    except Exception as error:
        raise AnyshapeError(f"the graph cannot be put in order: {_root_cause(error)}") from error
    if not clone.opset_imports.get("") and not clone.opset_imports.get("ai.onnx"):
        raise AnyshapeError("the file names no opset of ONNX")
    clone.opset_imports.setdefault("", clone.opset_imports.get("ai.onnx", 1))
    _forget_shapes(clone.graph)
    return clone


def _root_cause(error: BaseException) -> str:
    """What was at the root of it, first line only."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _refuse_unsound(graph: ir.Graph, outer: frozenset[str] = frozenset(), depth: int = 0) -> None:
    """Two values of one name cannot be told apart, and graphs inside of graphs without end cannot be walked."""
    if depth > budgets.DEEPEST_BODY:
        raise AnyshapeError("the graphs inside of this file are nested too deeply")
    seen = set(outer)
    _note_names(graph.inputs, seen)
    known = {*seen, *(str(name) for name in graph.initializers)}
    for node in graph:
        for value in node.inputs:
            if value is not None and value.name not in known:
                raise AnyshapeError(f"`{value.name}` is used before any node gives it: it is missing, or in a cycle")
        for body in graphs_in(node):
            _refuse_unsound(body, frozenset(known), depth + 1)
        _note_names(node.outputs, seen)
        known |= {value.name or "" for value in node.outputs}


def _note_names(values: Sequence[ir.Value], seen: set[str]) -> None:
    for value in values:
        if value.name in seen:
            raise AnyshapeError(f"two values of the file are called `{value.name}`")
        seen |= {value.name} if value.name else set()


def _forget_shapes(graph: ir.Graph) -> None:
    """What the file says about intermediate shapes was true for its own sizes only."""
    for node in graph:
        for value in node.outputs:
            value.shape = None
        for body in graphs_in(node):
            _forget_shapes(body)
