"""From a converter's model to ours: the user's names and dims, every input present, no trace of the machine.

All functions change the model in place: it was made for this candidate, and nobody else holds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from anyshape.conversion.graph.doubles import keep_digits
from anyshape.conversion.graph.opset import STACK_KEY, set_opset
from anyshape.conversion.graph.runtime_gaps import count_axes_from_the_front, transform_in_double
from anyshape.onnxfile.graph import describe, every_node, graphs_in
from anyshape.onnxfile.metadata import SCOPE_KEY, SOURCE_KEY, TORCH_SCOPES_KEY, module_of_scopes
from anyshape.runtime.releases import ir_version_for
from anyshape.sizes.notation import Expression
from anyshape.source.spans import span_of_recorded_stack

Axes = Sequence[int | Expression | str | None]


def finish(
    model: ir.Model, opset: int, inputs: Sequence[tuple[str, Axes, ir.DataType]], outputs: Sequence[str]
) -> ir.Model:
    """Name the inputs and outputs in the user's order, write the inputs' dims and the opset, and clean the rest.

    Outputs stay without dims until all runs have shown what they are.
    """
    keep_digits(model)
    count_axes_from_the_front(model)
    transform_in_double(model)
    set_opset(model, opset)
    _restore_lost_inputs(model.graph, inputs)
    _make_names_free(model.graph, {name for name, *_ in inputs} | set(outputs))
    for value, (name, axes, _) in zip(model.graph.inputs, inputs, strict=True):
        value.name = name
        value.shape = to_shape(axes)
    _name_outputs(model.graph, outputs)
    _remove_traces(model)
    # functions came with IR version 8
    model.ir_version = max(ir_version_for(opset), 8 if model.functions else 0)
    return model


def to_shape(axes: Axes) -> ir.Shape:
    return ir.Shape([str(axis) if isinstance(axis, Expression) else axis for axis in axes])


def _restore_lost_inputs(graph: ir.Graph, inputs: Sequence[tuple[str, Axes, ir.DataType]]) -> None:
    """TorchScript drops what it does not use; a caller still passes it. Its inputs are called `input_<index>`."""
    if len(graph.inputs) == len(inputs):
        return
    present = {value.name: value for value in graph.inputs}
    graph.inputs.clear()
    for index, (_, axes, dtype) in enumerate(inputs):
        value = present.get(f"input_{index}")
        if value is None:
            value = ir.Value(name=f"input_{index}", type=ir.TensorType(dtype), shape=to_shape(axes))
        graph.inputs.append(value)


def _make_names_free(graph: ir.Graph, wanted: set[str]) -> None:
    """Inner values give way to the names of inputs and outputs."""
    outside = set(graph.inputs)
    used: set[str] = set()
    for value in (*graph.initializers.values(), *(value for node in graph for value in node.outputs)):
        # parameters are the module's own: `model.encoder.weight` is called `encoder.weight`
        name = (value.name or "").removeprefix("model.")
        if value not in outside:
            while name in wanted or name in used:
                name += "_"
            used.add(name)
            if name != value.name:
                value.name = name  # an initializer's key follows by itself
    _make_inner_names_free(graph, wanted | used)


def _make_inner_names_free(graph: ir.Graph, used: set[str]) -> None:
    """A value of a body gives way to all around it, those behind it among them, which ONNX Runtime counts, too."""
    for body in (one for node in every_node(graph) for one in graphs_in(node)):
        for value in (*body.inputs, *(value for node in body for value in node.outputs)):
            name = value.name or ""
            while name in used:
                name += "_"
            used.add(name)
            if name != value.name:
                value.name = name


def _name_outputs(graph: ir.Graph, outputs: Sequence[str]) -> None:
    taken = {*graph.inputs, *graph.initializers.values()}
    for index, name in enumerate(outputs):
        value = graph.outputs[index]
        assert value is not None
        if value in taken:
            node = ir.node("Identity", [value])  # one value cannot be an input and an output, nor two outputs
            graph.append(node)
            value = describe(node.outputs[0], value)
            graph.outputs[index] = value
        taken.add(value)
        value.name = name
        value.shape = None


def _remove_traces(model: ir.Model) -> None:
    """Sources stay as relative `file:line`; stacks, absolute paths, source text and torch's symbols go."""
    model.producer_name, model.producer_version = "anyshape", None
    model.doc_string = model.graph.doc_string = None
    model.metadata_props.clear()
    model.graph.metadata_props.clear()
    model.graph.name = "main"
    kept = {*model.graph.inputs, *model.graph.outputs}
    graphs = [model.graph, *(function.graph for function in model.functions.values())]
    for graph in graphs:
        for value in graph.inputs:
            value.metadata_props.clear()
        for value in graph.initializers.values():
            value.metadata_props.clear()
            _forget_type(value)
    for node in (node for graph in graphs for node in every_node(graph)):
        _clean_node(node)
        for value in node.outputs:
            value.metadata_props.clear()
            value.doc_string = None
            if value not in kept:
                _forget_type(value)


def _forget_type(value: ir.Value) -> None:
    """Inner types are inferred by whoever reads the file; written down, torch's symbols show and quantisers stumble."""
    value.shape, value.type = None, None


def _clean_node(node: ir.Node) -> None:
    stack = node.metadata_props.get(STACK_KEY) or node.doc_string or ""
    span = span_of_recorded_stack(stack)
    adapter, _, scope = module_of_scopes(node.metadata_props.get(TORCH_SCOPES_KEY, "")).partition(".")
    node.metadata_props.clear()
    node.doc_string = None
    if span is not None:
        node.metadata_props[SOURCE_KEY] = f"{span.path}:{span.line} in {span.function}"
    if scope and adapter == "model":  # what an `Adapter` calls the user's module
        node.metadata_props[SCOPE_KEY] = scope


def set_output_axes(model: ir.Model, outputs: Sequence[Axes | None]) -> None:
    for value, axes in zip(model.graph.outputs, outputs, strict=True):
        assert value is not None
        value.shape = None if axes is None else to_shape(axes)


def add_metadata(model: ir.Model, entries: Mapping[str, str]) -> None:
    model.metadata_props.update(entries)
