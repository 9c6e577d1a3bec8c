"""The same graph in another opset: each node is written as that opset has it, or the operator is named that cannot be.

Torch writes opset 18 at least. Below that, nodes are written in older forms (`older_operators.py`); a node that the
definition of its operator in the wanted opset takes as it stands is left. Nothing is trusted: the file is run in the
form that was asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import onnx
import onnx_ir as ir

from anyshape.conversion.graph.older_operators import OLDER, SAME_MEANING
from anyshape.onnxfile.graph import every_node, is_standard, names_in
from anyshape.results.attempt import NewerOpsetError
from anyshape.source.spans import span_of_recorded_stack

_OLDEST_OF_TORCH_EXPORT = 18
STACK_KEY = "pkg.torch.onnx.stack_trace"

_CHANGED_MEANING = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "RoiAlign": 16, "GridSample": 20,
                    "GroupNormalization": 21, "DFT": 20}  # fmt: skip
"""Operators that mean something else since an opset, with the same inputs and attributes."""
_NEW_WORDS = {("Pad", "mode", "wrap"): 19, ("ScatterElements", "reduction", "max"): 18,
              ("ScatterElements", "reduction", "min"): 18, ("ScatterND", "reduction", "max"): 18,
              ("ScatterND", "reduction", "min"): 18}  # fmt: skip
"""Texts that an attribute may hold since an opset: no definition lists them."""


def set_opset(model: ir.Model, opset: int) -> None:
    """Write the model in this opset, in place; NewerOpsetError where an operator is not to be had in it."""
    have = model.opset_imports.get("", opset)
    # what TorchScript writes in an old opset is none of its own concern: types may be newer
    if have != opset or opset < _OLDEST_OF_TORCH_EXPORT:
        bodies = (model.graph, *(function.graph for function in model.functions.values()))
        nodes = [node for body in bodies for node in every_node(body)]
        for node in nodes if opset < have else ():
            since, write_older = OLDER.get(node.op_type, (0, None))
            if write_older is not None and opset < since and is_standard(node):
                write_older(node, opset)
        _name_apart(model, nodes)
        _refuse_newer([node for body in bodies for node in every_node(body)], have, opset)
    model.opset_imports[""] = opset
    for function in model.functions.values():
        function.opset_imports[""] = opset


def _name_apart(model: ir.Model, before: list[ir.Node]) -> None:
    """Give what new nodes make a name that no other graph has: names are one for a graph and those inside of it."""
    known = {id(node) for node in before}
    made = [node for node in every_node(model.graph) if id(node) not in known]
    taken = names_in(model) if made else set()
    fresh = (name for number in itertools.count() if (name := f"older_{number}") not in taken)
    for value in (value for node in made for value in node.outputs if not value.is_graph_output()):
        value.name = next(fresh)


def _refuse_newer(nodes: list[ir.Node], have: int, opset: int) -> None:
    """Hold each node to the definition of its operator; attributes that say nothing are left out before."""
    needed: dict[str, tuple[int, ir.Node]] = {}
    for node in (node for node in nodes if is_standard(node)):
        _leave_out_defaults(node, have, opset)
        newest = max(opset, have, _OLDEST_OF_TORCH_EXPORT)
        smallest = next((one for one in range(opset, newest + 1) if _is_defined(node, have, one)), have)
        if smallest != opset and smallest > needed.get(node.op_type, (0, node))[0]:
            needed[node.op_type] = smallest, node
    if needed:
        smallest, node = max(needed.values(), key=lambda row: row[0])
        stack = node.metadata_props.get(STACK_KEY) or node.doc_string or ""
        rows = tuple((operator, since) for operator, (since, _) in needed.items())
        raise NewerOpsetError(opset, rows, span_of_recorded_stack(stack))


def _schema_in(operator: str, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(operator, opset, "")
    except onnx.defs.SchemaError:
        return None


def _leave_out_defaults(node: ir.Node, have: int, opset: int) -> None:
    """What a newer definition writes down, and the older one does not know, says nothing at its default."""
    newer, older = _schema_in(node.op_type, have), _schema_in(node.op_type, opset)
    if newer is None or older is None or newer.since_version == older.since_version:
        return
    for name in [name for name in node.attributes if name not in older.attributes and name in newer.attributes]:
        default = newer.attributes[name].default_value
        if default.name and ir.serde.deserialize_attribute(default).value == node.attributes[name].value:
            node.attributes.pop(name)


def _is_defined(node: ir.Node, have: int, opset: int) -> bool:
    """Whether an opset defines the operator so that the node is valid in it and means the same."""
    schema = _schema_in(node.op_type, opset)
    changed = _CHANGED_MEANING.get(node.op_type, 0)
    if schema is None or (min(have, opset) < changed <= max(have, opset) and not node.meta.get(SAME_MEANING)):
        return False
    if any(name not in schema.attributes for name in node.attributes):
        return False
    inputs, outputs = _without_missing(node.inputs), _without_missing(node.outputs)
    if not schema.min_input <= len(inputs) <= schema.max_input or len(outputs) > schema.max_output:
        return False
    return _takes_words(node, opset) and all(_takes_types(schema.inputs, inputs))


def _without_missing(values: Sequence[ir.Value | None]) -> list[ir.Value | None]:
    """Without the optional ones at the end that are not there."""
    found = list(values)
    while found and (found[-1] is None or not (found[-1].name or found[-1].uses() or found[-1].is_graph_output())):
        found.pop()
    return found


def _takes_words(node: ir.Node, opset: int) -> bool:
    rows = [row for row in _NEW_WORDS if row[0] == node.op_type and opset < _NEW_WORDS[row]]
    return not any(node.attributes.get_string(name, "") == word for _, name, word in rows)


def _takes_types(
    formal: Sequence[onnx.defs.OpSchema.FormalParameter], inputs: Sequence[ir.Value | None]
) -> Iterator[bool]:
    """Of each input whether its type is taken; one of unknown type is."""
    for index, value in enumerate(inputs):
        place = formal[min(index, len(formal) - 1)]  # the last may stand for several
        yield value is None or not isinstance(value.type, ir.TensorType) or _type_text(value.type) in place.types


def _type_text(kind: ir.TensorType) -> str:
    known = onnx.TensorProto.DataType.Name(int(kind.dtype)).lower()
    return f"tensor({known})"
