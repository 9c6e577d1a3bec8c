"""Heads are viewed once: a view of all rows, a Transpose and a second view become one view and one Transpose.

`nn.MultiheadAttention` views [positions, batch, features] as [positions, batch * heads, features of a head], moves the
positions behind, and views that as [batch, heads, positions, features of a head].
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Sizes
from anyshape.conversion.graph.rewrites.reshape_targets_views import reshaped
from anyshape.onnxfile.graph import first_input, maker, nodes_of, permutation, replace, transposed

_SWAPPED = (1, 0, 2)
_APART = (1, 2, 0, 3)


def join(graph: ir.Graph, sizes: Sizes) -> None:
    """Reshape(Transpose(Reshape(x))) of that form becomes Transpose(Reshape(x))."""
    for node in nodes_of(graph, "Reshape"):
        moved = maker(node.inputs[0], "Transpose")
        rows = maker(first_input(moved), "Reshape") if moved is not None else None
        if moved is None or rows is None or permutation(moved) != _SWAPPED:
            continue
        plain, viewed, wanted = (sizes.all_of(v) for v in (first_input(rows), rows.outputs[0], node.outputs[0]))
        if plain is None or viewed is None or wanted is None or len(plain) != 3 or len(wanted) != 4:
            continue
        positions, batch, features = plain
        _, heads, _, head = wanted
        fits = wanted == (batch, heads, positions, head) and (viewed[0], viewed[2]) == (positions, head)
        if not fits or not isinstance(heads, int) or not isinstance(head, int) or heads * head != features:
            continue
        axes = (positions, batch, heads, head)
        view = reshaped(node, first_input(rows), axes, sizes)
        if view is not None:
            replace(node.outputs[0], transposed(node, view, _APART, axes))
