"""Growth pushed back through the node that computes a value, to the constants behind it: one function per operator."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.onnxfile.freeing.formulas import Wants
from anyshape.onnxfile.freeing.preparing import is_standard
from anyshape.onnxfile.freeing.pushing import axes, tables
from anyshape.onnxfile.freeing.pushing.twins import Pushed
from anyshape.onnxfile.freeing.walking import Walk

_RULES = {**axes.RULES, **tables.RULES}


def grown_backwards(walk: Walk, value: ir.Value, wants: Wants) -> Pushed:
    """The value with these sizes (or 1 where it is uniform along the axis); None where its origin is not understood."""
    node = value.producer()
    assert node is not None
    rule = _RULES.get(node.op_type)
    if rule is None or not is_standard(node) or node.outputs[0] is not value:
        return None
    return rule(walk, node, wants)
