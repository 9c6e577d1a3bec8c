"""A quotient by a root is written as one: ONNX Runtime then knows a root-mean-square norm when it sees it.

torch's `rsqrt` is translated as the reciprocal of a root and a product with it.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Sizes
from anyshape.onnxfile.graph import first_input, insert, maker, nodes_of, replace


def divide(graph: ir.Graph, sizes: Sizes) -> None:
    """Mul(x, Reciprocal(Sqrt(y))) becomes Div(x, Sqrt(y))."""
    for node in nodes_of(graph, "Mul"):
        for place, value in enumerate(node.inputs):
            inverse = maker(value, "Reciprocal")
            root = maker(first_input(inverse), "Sqrt") if inverse is not None else None
            if root is None:
                continue
            result = node.outputs[0]
            quotient = insert(
                node, "Div", [node.inputs[1 - place], root.outputs[0]], axes=sizes.of(result), like=result
            )
            replace(result, quotient)
            break
