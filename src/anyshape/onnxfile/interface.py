"""The inputs and outputs that a file declares, and whether a run keeps what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from anyshape.errors import DeclarationError
from anyshape.onnxfile.graph import STANDARD_DOMAINS, proto_graphs
from anyshape.sizes import budgets
from anyshape.sizes.notation import parse_expression
from anyshape.sizes.spelling import without_controls

DeclaredAxis = int | str | None


@dataclass(frozen=True)
class Port:
    """One input or output: its name, element type and axes (a number, a name or expression, or unknown)."""

    name: str
    dtype: str
    axes: tuple[DeclaredAxis, ...] | None

    def __str__(self) -> str:
        return f"{self.name}: {self.typed()}"

    def typed(self, axes: Sequence[str] | None = None) -> str:
        """`float32[batch, 3]`; the axes may be said in other words."""
        if self.axes is None:
            return f"{self.dtype}[...]"
        words = axes if axes is not None else ["?" if axis is None else str(axis) for axis in self.axes]
        return f"{self.dtype}[{', '.join(words)}]"


@dataclass(frozen=True)
class Interface:
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims that the inputs name, in order."""
        names: dict[str, None] = {}
        for port in self.inputs:
            for axis in port.axes or ():
                if isinstance(axis, str):
                    names.update(dict.fromkeys(dims_in(axis)))
        return tuple(names)


def port_rows(kind: str, named: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """`input` and `x  float32[batch, 3]`: a picture of the first inputs or outputs, each a name and its type."""
    named = [(_in_a_row(name), _in_a_row(typed)) for name, typed in named]
    width = max((len(name) for name, _ in named), default=0)
    yield from ((kind, f"{name:<{width}}  {typed}") for name, typed in named[: budgets.MOST_ROWS_OF_PORTS])
    if len(named) > budgets.MOST_ROWS_OF_PORTS:
        yield kind, f"... and {len(named) - budgets.MOST_ROWS_OF_PORTS} more"


def _in_a_row(text: str) -> str:
    """A stranger's names neither end a line nor control a terminal."""
    return without_controls(text).replace("\n", r"\n")


def read_interface(model: onnx.ModelProto) -> Interface:
    initialised = {tensor.name for tensor in model.graph.initializer}
    inputs = tuple(port_of(value) for value in model.graph.input if value.name not in initialised)
    return Interface(inputs, tuple(port_of(value) for value in model.graph.output))


def opset_of(model: onnx.ModelProto) -> int | None:
    """The version of ONNX's own operators that a file is written in."""
    return next((int(entry.version) for entry in model.opset_import if entry.domain in STANDARD_DOMAINS), None)


def unused_inputs(model: onnx.ModelProto) -> list[str]:
    """Inputs that no node looks at."""
    used = {name for graph in proto_graphs(model) for node in graph.node for name in node.input}
    used |= {value.name for value in model.graph.output}
    return [value.name for value in model.graph.input if value.name not in used]


_TYPE_NAMES = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()} | {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.DOUBLE: "float64",
}


def type_name(kind: int) -> str:
    """How a type of elements is called, by its number."""
    return str(_TYPE_NAMES.get(kind, f"type {kind}"))


def port_of(value: onnx.ValueInfoProto) -> Port:
    kind = value.type.tensor_type
    dtype = type_name(kind.elem_type)
    if not kind.HasField("shape"):
        return Port(value.name, dtype, None)
    axes = (int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None for dim in kind.shape.dim)
    return Port(value.name, dtype, tuple(axes))


def dims_in(axis: str) -> tuple[str, ...]:
    try:
        return parse_expression(axis).names
    except DeclarationError:
        return (axis,)


Shape = tuple[int, ...]


def broken_promise(
    interface: Interface, inputs: Mapping[str, Shape], outputs: Sequence[Shape]
) -> tuple[str, str] | None:
    """The output whose declared axes a run contradicts, and the sentence; None where all is as declared.

    One name is one size, on inputs and outputs alike.
    """
    sized = [(port, inputs[port.name]) for port in interface.inputs]
    sized += zip(interface.outputs, outputs, strict=True)
    for port, shape in sized:
        if found := _contradicts_numbers(port, shape):
            return port.name, found
    known: dict[str, int] = {}
    # what stands alone tells the dims, expressions are checked by them; inputs come before outputs
    axes = [(port, shape, i, a) for port, shape in sized for i, a in enumerate(port.axes or ()) if isinstance(a, str)]
    for port, shape, index, axis in sorted(axes, key=lambda row: not row[3].isidentifier()):
        expected = expected_size(axis, known)
        if expected not in (None, shape[index]):
            return port.name, f"declares `{axis}` = {expected} on axis {index} but has shape {shape}"
        known.setdefault(axis, shape[index])
    return None


def _contradicts_numbers(port: Port, shape: Shape) -> str | None:
    if port.axes is None:
        return None
    if len(port.axes) != len(shape):
        return f"declares {len(port.axes)} axes but has shape {shape}"
    for index, (axis, size) in enumerate(zip(port.axes, shape, strict=True)):
        if isinstance(axis, int) and axis != size:
            return f"declares {axis} on axis {index} but has shape {shape}"
    return None


def expected_size(declared: str, known: Mapping[str, int]) -> int | None:
    """The size of a declared axis, where what is bound so far tells it."""
    if declared in known:
        return known[declared]
    try:
        return parse_expression(declared).value(known)
    except (DeclarationError, KeyError, ZeroDivisionError):
        return None
