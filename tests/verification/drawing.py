"""A small ONNX graph written as text, and edits of that text.

Nodes are ONNX text with one addition: `{12}` is a constant: a scalar, or with a comma (`{12,}`, `{0, 5}`) one axis;
with a point (`{0.5}`) it is float32, else int64. `choose` writes an If that depends on sizes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper
from torch import nn

_CONSTANT = re.compile(r"\{\s*(-?[\d.]+\s*(?:,\s*-?[\d.]+)*,?)\s*\}")
_TOP_LEVEL_COMMA = re.compile(r",\s*(?![^()]*\))")
_TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}

Weights = dict[str, np.ndarray]


def parameters(module: nn.Module) -> Weights:
    """Every parameter and buffer under its own name, `first.weight` as `first_weight`."""
    return {name.replace(".", "_"): value.detach().numpy() for name, value in module.state_dict().items()}


@dataclass(frozen=True)
class Drawing:
    """Called with a module, it gives the ONNX model with the weights of that module."""

    inputs: dict[str, str]
    outputs: dict[str, str]
    nodes: str
    weights: Callable[[nn.Module], Weights] = parameters
    opset: int = 20
    extra: Weights = field(default_factory=dict)

    def __call__(self, module: nn.Module) -> onnx.ModelProto:
        text, constants = _name_constants(self.nodes)
        graph = onnx.parser.parse_graph(f"drawn () => () {{\n{text}\n}}")
        used = set(re.findall(r"\w+", text))
        weights = {name: value for name, value in self.weights(module).items() if name in used}
        graph.initializer.extend(
            numpy_helper.from_array(value.copy(order="C"), name)
            for name, value in {**weights, **constants, **self.extra}.items()
        )
        graph.input.extend(_declare(name, text) for name, text in self.inputs.items())
        graph.output.extend(_declare(name, text) for name, text in self.outputs.items())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 10 if self.opset < 23 else 11
        return model

    def redefine(self, changes: Mapping[str, str]) -> Drawing:
        """New text for the named values; in it, `right` is what the value was, and `right_<value>` the same."""
        lines = [line.strip() for line in self.nodes.strip().splitlines()]
        for value, text in changes.items():
            (at,) = [i for i, line in enumerate(lines) if value in _outputs_of(line)]
            kept = f"right_{value}"
            new = re.sub(r"\bright\b", kept, text)
            outputs, operation = lines[at].split("=", 1)
            is_needed = kept in new or "," in outputs
            lines[at : at + 1] = [
                *[re.sub(rf"\b{value}\b", kept, outputs) + "=" + operation] * is_needed,
                *new.split("\n"),
            ]
        return replace(self, nodes="\n".join(lines))

    def declare(self, **shapes: str) -> Drawing:
        """Other declared shapes for inputs or outputs; the nodes stay."""
        inputs = {name: shapes.get(name, text) for name, text in self.inputs.items()}
        outputs = {name: shapes.get(name, text) for name, text in self.outputs.items()}
        assert {*shapes} <= {*inputs, *outputs}, shapes
        return replace(self, inputs=inputs, outputs=outputs)


def choose(value: str, condition: str, then: str, otherwise: str = "Identity(right)", *, dtype: str = "float") -> str:
    """`value` is `then` where the condition (an operator on sizes) holds, else `otherwise`."""
    return (
        f"{value}_condition = {condition}\n"
        f"{value} = If({value}_condition) <"
        f"then_branch = then_{value} () => ({dtype} {value}_then) {{ {value}_then = {then} }}, "
        f"else_branch = else_{value} () => ({dtype} {value}_else) {{ {value}_else = {otherwise} }}>"
    )


def size(name: str, source: str, axis: int) -> str:
    return f"{name} = Shape<start={axis}, end={axis + 1}>({source})\n"


def places(source: str, axis: int) -> str:
    """`places` counts along an axis."""
    return f"{size('total_places', source, axis)}limit = Squeeze(total_places)\nplaces = Range({{0}}, limit, {{1}})\n"


def late(source: str, axis: int, first: int) -> str:
    """`late` holds from a place on."""
    return f"{places(source, axis)}late = GreaterOrEqual(places, {{{first}}})\n"


def first_row_from(value: str, source: str, row: int) -> str:
    """From a row on, `value` repeats its row 0."""
    origin = "origin = Where(late, {0}, places)\n"
    return f"{late(source, 0, row)}{origin}{value} = Gather<axis=0>(right, origin)"


def _outputs_of(line: str) -> list[str]:
    return [name.strip() for name in line.partition("=")[0].split(",")]


def _name_constants(text: str) -> tuple[str, Weights]:
    """`{12}` becomes `constant_0`, whose value is kept."""
    constants: Weights = {}

    def name_of(match: re.Match[str]) -> str:
        value = np.array(ast.literal_eval(match[1]))
        constants[f"constant_{len(constants)}"] = value.astype(np.float32 if value.dtype.kind == "f" else np.int64)
        return f"constant_{len(constants) - 1}"

    return _CONSTANT.sub(name_of, text), constants


def _declare(name: str, text: str) -> ValueInfoProto:
    """`float32[batch, n + m, ?, 8]` as an input or output of the graph."""
    dtype, axes = text.removesuffix("]").split("[")
    parts = [part for part in _TOP_LEVEL_COMMA.split(axes) if part]
    shape = [int(part) if part.isdecimal() else None if part == "?" else part for part in parts]
    return helper.make_tensor_value_info(name, _TYPES[dtype], shape)
