"""What a file says beside its graph: its opset, the user's line behind each node, and advice for whoever opens it.

ONNX Runtime fuses a sum and the LayerNormalization behind it, as soon as it knows the sizes: in a session for one size,
by free-dimension overrides. On a CPU in float32 the fused kernel takes longer than both apart, so the file advises
against that fusion.
"""

from __future__ import annotations

import ast
import json

import onnx
import onnx_ir as ir

from anyshape.onnxfile.graph import every_node, maker

SOURCE_KEY = "anyshape.source"
"""The metadata of a node that names the user's line it came from: `model.py:31 in Net.forward`."""
SCOPE_KEY = "anyshape.scope"
"""The metadata of a node that names the module it came from: `encoder.layer.0.attention`."""
TORCH_SCOPES_KEY = "pkg.torch.onnx.name_scopes"
KEY = "anyshape.session"
"""The metadata of a file that holds advice for a session."""
_SLOWER = "SkipLayerNormFusion"


def session_advice(model: ir.Model) -> dict[str, str]:
    """The entry for the file's metadata; none where there is nothing to say."""
    if any(_normalises_a_sum(node) for node in every_node(model.graph, "LayerNormalization")):
        return {KEY: json.dumps({"disabled_optimizers": [_SLOWER]})}
    return {}


def _normalises_a_sum(node: ir.Node) -> bool:
    if node.inputs[0] is None or node.inputs[1] is None:
        return False
    total, scale = maker(node.inputs[0], "Add"), node.inputs[1].const_value
    is_single = scale is not None and scale.dtype == ir.DataType.FLOAT
    return is_single and total is not None and len(total.outputs[0].uses()) == 1


def advised_optimizers(model: onnx.ModelProto) -> list[str]:
    """The optimisers that the file itself wants switched off; what is no such list is no advice."""
    text = next((entry.value for entry in model.metadata_props if entry.key == KEY), "{}")
    try:
        names = json.loads(text)["disabled_optimizers"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


def module_of_scopes(text: str) -> str:
    """The innermost module in what torch writes: `['', 'encoder', 'encoder.layer.0', 'linear']`, the node last."""
    try:
        scopes = ast.literal_eval(text)
        scope = str(scopes[-2]) if len(scopes) > 1 else ""
        return "" if scope.startswith("_empty_nn_module_stack") else scope  # torch's word for no module
    except (ValueError, SyntaxError, TypeError, IndexError, KeyError, RecursionError, MemoryError):
        return ""
