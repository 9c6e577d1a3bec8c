"""Rewrites that make a file faster and leave its results as they are.

Each is one function that changes the graph in place; what it may rely on it reads from the graph and from the sizes
that the trace noted on its values. A rewritten file is checked like any other, and `optimize=False` leaves the graph as
the translation wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
from onnx_ir.passes.common import CommonSubexpressionEliminationPass, RemoveUnusedNodesPass

from anyshape.conversion.graph import known_sizes
from anyshape.conversion.graph.known_sizes import DeclaredAxis, Sizes
from anyshape.conversion.graph.rewrites import fewer_nodes, heads
from anyshape.onnxfile.graph import graphs_in

Rewrite = Callable[[ir.Graph, Sizes], None]

_REWRITES: tuple[Rewrite, ...] = (
    known_sizes.share,
    fewer_nodes.shorten_floors,
    fewer_nodes.divide_by_roots,
    fewer_nodes.join_means,
    fewer_nodes.leave_out_lookups,
    heads.share_repeated_heads,
    fewer_nodes.choose_by_one_node,
    heads.split_products,
    heads.view_heads_once,
    heads.take_three_axes,
    heads.cancel_transposes,
    fewer_nodes.split_instead_of_slices,
    known_sizes.write_targets,
)
"""In this order: each finds what those before have brought together; targets come last, for all that was moved."""


def rewrite(model: ir.Model, declared: Sequence[Sequence[DeclaredAxis | None]] = ()) -> None:
    """Rewrite the model in place; `declared` says for each input what its axes were declared as.

    A model with branches or loops stays as it is: what holds for a size may depend on the path to it.
    """
    graph = model.graph
    if any(graphs_in(node) for node in graph):
        return
    known, before = Sizes(graph, declared), [id(node) for node in graph]
    CommonSubexpressionEliminationPass()(model)
    for rewrite_one in _REWRITES:
        rewrite_one(graph, known)
        RemoveUnusedNodesPass()(model)  # what nobody reads any more would look like another reader
    CommonSubexpressionEliminationPass()(model)
    model.meta[_REWRITTEN] = before != [id(node) for node in graph]


_REWRITTEN = "anyshape.rewritten"
"""A note on the model in memory; the file does not have it."""


def is_rewritten(model: ir.Model) -> bool:
    """Whether any rewrite found something to do."""
    return bool(model.meta.get(_REWRITTEN))
