"""The inputs and outputs that a file declares, and whether a run keeps what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from anyshape.declaration.notation import parse_expression
from anyshape.errors import DeclarationError

DeclaredAxis = int | str | None


@dataclass(frozen=True)
class Port:
    """One input or output: its name, element type and axes (a number, a name or expression, or unknown)."""

    name: str
    dtype: str
    axes: tuple[DeclaredAxis, ...] | None

    def __str__(self) -> str:
        if self.axes is None:
            return f"{self.name}: {self.dtype}[...]"
        return f"{self.name}: {self.dtype}[{', '.join('?' if a is None else str(a) for a in self.axes)}]"


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
                    names.update(dict.fromkeys(_names(axis)))
        return tuple(names)


def read_interface(model: onnx.ModelProto) -> Interface:
    initialised = {tensor.name for tensor in model.graph.initializer}
    inputs = tuple(_port(value) for value in model.graph.input if value.name not in initialised)
    return Interface(inputs, tuple(_port(value) for value in model.graph.output))


def _port(value: onnx.ValueInfoProto) -> Port:
    kind = value.type.tensor_type
    dtype = onnx.TensorProto.DataType.Name(kind.elem_type).lower()
    dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    if not kind.HasField("shape"):
        return Port(value.name, dtype, None)
    return Port(value.name, dtype, tuple(_axis(dim) for dim in kind.shape.dim))


def _axis(dim: onnx.TensorShapeProto.Dimension) -> DeclaredAxis:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return dim.dim_param or None


def _names(axis: str) -> tuple[str, ...]:
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
    known: dict[str, int] = {}
    for port in interface.inputs:
        if found := _contradiction(port, inputs[port.name], known):
            return found
    for port, shape in zip(interface.outputs, outputs, strict=True):
        if found := _contradiction(port, shape, known):
            return found
    return None


def _contradiction(port: Port, shape: Shape, known: dict[str, int]) -> tuple[str, str] | None:
    if port.axes is None:
        return None
    if len(port.axes) != len(shape):
        return port.name, f"declares {len(port.axes)} axes but has shape {shape}"
    late: list[tuple[str, int, int]] = []
    for axis, (declared, size) in enumerate(zip(port.axes, shape, strict=True)):
        if isinstance(declared, int) and declared != size:
            return port.name, f"declares {declared} on axis {axis} but has shape {shape}"
        if isinstance(declared, str):
            late.append((declared, axis, size))
    for declared, axis, size in late:
        expected = _expected(declared, known)
        if expected is not None and expected != size:
            return port.name, f"declares `{declared}` = {expected} on axis {axis} but has shape {shape}"
        known.setdefault(declared, size)
    return None


def _expected(declared: str, known: Mapping[str, int]) -> int | None:
    """The size of a declared axis, where what is bound so far tells it."""
    if declared in known:
        return known[declared]
    try:
        return parse_expression(declared).value(known)
    except (DeclarationError, KeyError, ZeroDivisionError):
        return None
