"""Advice for whoever opens the file in ONNX Runtime, stored in the file: fusions that make this graph slower on a CPU.

ONNX Runtime fuses a sum and the LayerNormalization behind it, as soon as it knows the sizes: in a session for one size,
by free-dimension overrides. On a CPU in float32 the fused kernel takes longer than both apart.
"""

from __future__ import annotations

import json

import onnx_ir as ir

KEY = "anyshape.session"
_SLOWER = "SkipLayerNormFusion"


def session_advice(model: ir.Model) -> dict[str, str]:
    """The entry for the file's metadata; none where there is nothing to say."""
    if any(_normalises_a_sum(node) for node in ir.traversal.RecursiveGraphIterator(model.graph)):
        return {KEY: json.dumps({"disabled_optimizers": [_SLOWER]})}
    return {}


def _normalises_a_sum(node: ir.Node) -> bool:
    if node.op_type != "LayerNormalization" or node.inputs[0] is None or node.inputs[1] is None:
        return False
    total, scale = node.inputs[0].producer(), node.inputs[1].const_value
    is_single = scale is not None and scale.dtype == ir.DataType.FLOAT
    return is_single and total is not None and total.op_type == "Add" and len(total.outputs[0].uses()) == 1


SOURCE_KEY = "anyshape.source"
"""The metadata of a node that names the user's line it came from: `model.py:31 in Net.forward`."""
