"""Two Transposes that undo each other, with nothing between them that looks at the order of rows, are left out.

A product with a matrix, a bias of one axis and a Split of the last axis treat all rows the same: whether positions or
the batch come first makes no difference to them.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Sizes
from anyshape.conversion.graph.rewrites.reshape_targets import reshaped
from anyshape.onnxfile.graph import first_input, is_op, nodes_of, only_user, permutation, replace, users

_SWAPPED = (1, 0, 2)


def cancel(graph: ir.Graph, sizes: Sizes) -> None:
    for node in nodes_of(graph, "Transpose"):
        if permutation(node) == _SWAPPED and not node.outputs[0].is_graph_output():
            _cancel_after_row_by_row(node, sizes) or _cancel_after_rows(node, sizes)


def _cancel_after_row_by_row(first: ir.Node, sizes: Sizes) -> bool:
    """Transpose, then nodes that take row by row, then Transposes of all that comes out of them."""
    chain: list[ir.Node] = []
    value = first.outputs[0]
    while (node := only_user(value, "MatMul", "Add", "Split")) is not None and _takes_rows(node, value, sizes):
        chain.append(node)
        if node.op_type == "Split":
            break
        value = node.outputs[0]
    ends = [user for result in (chain[-1].outputs if chain else ()) for user in users(result)]
    returned = any(result.is_graph_output() for result in (chain[-1].outputs if chain else ()))
    if not ends or returned or not all(is_op(end, "Transpose") and permutation(end) == _SWAPPED for end in ends):
        return False
    chain[0].replace_input_with(list(chain[0].inputs).index(first.outputs[0]), first_input(first))
    for result in (result for node in chain for result in node.outputs):
        known = sizes.of(result)
        result.shape = None if known is None else ir.Shape([known[1], known[0], known[2]])
    for end in ends:
        replace(end.outputs[0], first_input(end))
    return True


def _takes_rows(node: ir.Node, rows: ir.Value, sizes: Sizes) -> bool:
    others = [value for value in node.inputs if value is not rows]
    axes = len(sizes.of(others[0]) or ()) if len(others) == 1 else None
    if node.op_type == "MatMul":
        return node.inputs[0] is rows and axes == 2
    if node.op_type == "Add":
        return axes == 1
    return node.attributes.get_int("axis", 0) in (2, -1)


def _cancel_after_rows(first: ir.Node, sizes: Sizes) -> bool:
    """Transpose, all rows as one axis, a Gemm, the rows apart again, Transpose."""
    flat = only_user(first.outputs[0], "Reshape")
    product = only_user(flat.outputs[0], "Gemm") if flat is not None else None
    apart = only_user(product.outputs[0], "Reshape") if product is not None else None
    last = only_user(apart.outputs[0], "Transpose") if apart is not None else None
    if flat is None or product is None or apart is None or last is None or permutation(last) != _SWAPPED:
        return False
    before, rows, after = sizes.all_of(first_input(first)), sizes.of(flat.outputs[0]), sizes.all_of(last.outputs[0])
    takes_rows = product.inputs[0] is flat.outputs[0] and product.attributes.get_int("transA", 0) == 0
    bias = sizes.of(product.inputs[2]) if len(product.inputs) > 2 else ()
    if before is None or rows is None or after is None or bias is None or not takes_rows or len(bias) > 1:
        return False
    if len(rows) != 2 or rows[1] != before[2] or after[:2] != before[:2]:
        return False
    result = reshaped(last, product.outputs[0], after, sizes)
    if result is None:
        return False
    flat.replace_input_with(0, first_input(first))
    replace(last.outputs[0], result)
    return True
