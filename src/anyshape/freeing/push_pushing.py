"""Growth pushed back through the node that computes a value, to the constants behind it: one function per operator."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.freeing import push_axes, push_tables
from anyshape.freeing.growth_formulas import Wants
from anyshape.freeing.preparation import is_standard
from anyshape.freeing.push import Pushed
from anyshape.freeing.walk import Walk

_RULES = {**push_axes.RULES, **push_tables.RULES}


def grown_backwards(walk: Walk, value: ir.Value, wants: Wants) -> Pushed:
    """The value with these sizes (or 1 where it is uniform along the axis); None where its origin is not understood."""
    node = value.producer()
    assert node is not None
    rule = _RULES.get(node.op_type)
    if rule is None or not is_standard(node) or node.outputs[0] is not value:
        return None
    return rule(walk, node, wants)
