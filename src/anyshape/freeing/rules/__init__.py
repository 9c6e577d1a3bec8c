"""One rule per operator that can pin a size: it rewrites the node where needed, and may know its outputs' sizes.

A rule gets the walk and the node; it returns the shapes of the outputs that it knows better than inference, or None.
An operator without a rule pins nothing, as far as anybody knows: the inference tells its sizes, and the walk compares
them with what was observed. To add one, write a function into the file of its family and name it in that file's RULES.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.freeing.rules import broadcast, expand, index, products, reshape, sequences, slices, subgraphs
from anyshape.freeing.walk import Rule
from anyshape.onnxfile.graph import is_standard

_FAMILIES = (reshape, broadcast, expand, products, slices, index, sequences, subgraphs)
_RULES: dict[str, Rule] = {operator: rule for family in _FAMILIES for operator, rule in family.RULES.items()}


def rule_for(node: ir.Node) -> Rule | None:
    return _RULES.get(node.op_type) if is_standard(node) else None
