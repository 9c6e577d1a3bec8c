"""One rule per operator that can pin a size: it rewrites the node where needed, and may know its outputs' sizes.

A rule gets the walk and the node; it returns the shapes of the outputs that it knows better than inference, or None.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.onnxfile.freeing.preparing import is_standard
from anyshape.onnxfile.freeing.rules import (
    attention,
    broadcasting,
    expanding,
    indexing,
    inside,
    products,
    recurrent,
    reshaping,
    resizing,
    slicing,
)
from anyshape.onnxfile.freeing.rules.rule import Rule

_RULES: dict[str, Rule] = {
    **reshaping.RULES,
    **broadcasting.RULES,
    **expanding.RULES,
    **products.RULES,
    **slicing.RULES,
    **indexing.RULES,
    **resizing.RULES,
    **recurrent.RULES,
    **attention.RULES,
    **inside.RULES,
}


def rule_for(node: ir.Node) -> Rule | None:
    return _RULES.get(node.op_type) if is_standard(node) else None
