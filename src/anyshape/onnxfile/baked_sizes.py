"""What is baked into a file: numbers that stand where a size should vary.

Only what can be read off the graph: a static axis that looks like a batch, and operators whose shape is a constant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import onnx
import onnx.shape_inference
import onnx_ir as ir

from anyshape.onnxfile.graph import every_node, integers_in, is_standard, proto_graphs
from anyshape.onnxfile.interface import DeclaredAxis, Interface, Port, port_of
from anyshape.onnxfile.metadata import SOURCE_KEY
from anyshape.onnxfile.untrusted import stored_tensors
from anyshape.sizes import budgets

_END_OF_AXIS = 2**31
"""Exporters write a number from here on for "up to the end"."""

Axes = Sequence[DeclaredAxis]


@dataclass(frozen=True)
class Baked:
    """One place where a size is a number: an axis of an input, or a node with a constant."""

    sentence: str
    name: str
    """The input or the node."""
    operator: str = ""
    """Empty for an input."""
    constant: tuple[int, ...] = ()
    source: str = ""
    """The user's line that the node came from, where the file tells: `model.py:17 in Head.forward`."""

    def __str__(self) -> str:
        return f"{self.sentence}, from {self.source}" if self.source else self.sentence

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {**vars(self), "constant": list(self.constant)}


def find_baked(model: onnx.ModelProto, interface: Interface) -> tuple[Baked, ...]:
    """Every place that looks baked in, inputs first. Clears the weights of `model`, which nobody needs for this."""
    axes = [baked for port in interface.inputs if (baked := _static_batch(port)) is not None]
    return (*axes, *(_pinning_nodes(model) if interface.dims or _has_unnamed(interface) else ()))


def _has_unnamed(interface: Interface) -> bool:
    return any(axis is None for port in interface.inputs for axis in port.axes or ())


def _static_batch(port: Port) -> Baked | None:
    if port.axes is None or len(port.axes) < 2 or port.axes[0] != 1:
        return None
    return Baked(f"input `{port.name}` has 1 on axis 0, which looks like a batch", port.name, constant=(1,))


# ---- nodes whose shape is a constant


@dataclass(frozen=True)
class _NodeView:
    """One node and what is known about the values around it."""

    node: onnx.NodeProto
    constants: Mapping[str, tuple[int, ...]]
    shapes: Mapping[str, Axes]
    varying: set[str]
    """Values that depend on an input whose size varies."""

    def constant(self, index: int) -> tuple[int, ...]:
        """The numbers of an input, or none where it is no constant."""
        return self.constants.get(self._input(index), ())

    @property
    def varies(self) -> bool:
        return self._input(0) in self.varying

    @property
    def axes(self) -> Axes | None:
        """The axes of the data, where they are known."""
        return self.shapes.get(self._input(0))

    def _input(self, index: int) -> str:
        return self.node.input[index] if index < len(self.node.input) else ""


def _is_dim(axis: DeclaredAxis) -> bool:
    """Whether an axis is a size that somebody named; inference calls those that it does not know `unk__0`."""
    return isinstance(axis, str) and not axis.startswith("unk__")


def _reshape(view: _NodeView) -> tuple[int, ...]:
    """All axes as numbers, or a number other than 1 in front where the data varies."""
    shape, axes = view.constant(1), view.axes
    if not shape or shape[0] <= 0 or not view.varies:
        return ()
    if all(n > 0 for n in shape):
        return shape if axes is None or any(not isinstance(axis, int) for axis in axes) else ()
    return shape if shape[0] > 1 and axes and _is_dim(axes[0]) else ()


def _expand(view: _NodeView) -> tuple[int, ...]:
    """Data that varies cannot be broadcast to a number; data that does not is copied for so many rows."""
    shape, axes = view.constant(1), view.axes
    if view.varies and axes is not None:
        pairs = zip(reversed(shape), reversed(axes), strict=False)
        return shape if any(n > 1 and _is_dim(axis) for n, axis in pairs) else ()
    return shape if len(shape) > 1 and shape[0] > 1 else ()


def _constant_of_shape(view: _NodeView) -> tuple[int, ...]:
    shape = view.constant(0)
    return shape if len(shape) > 1 and shape[0] > 1 else ()


def _tile(view: _NodeView) -> tuple[int, ...]:
    repeats = view.constant(1)
    return repeats if len(repeats) > 1 and repeats[0] > 1 and not view.varies else ()


def _slice(view: _NodeView) -> tuple[int, ...]:
    """The first rows of an axis that varies: fewer rows than that are not there, more are cut off."""
    starts, ends, axes = view.constant(1), view.constant(2), view.constant(3) or (0,)
    if not view.axes or not _is_dim(view.axes[0]) or 0 not in axes[: len(ends)]:
        return ()
    place = axes.index(0)
    first = starts[place] if place < len(starts) else None
    return ends if first == 0 and 1 < ends[place] < _END_OF_AXIS else ()


_RULES: Mapping[str, tuple[str, Callable[[_NodeView], tuple[int, ...]]]] = {
    "Reshape": ("shape", _reshape),
    "Expand": ("shape", _expand),
    "ConstantOfShape": ("shape", _constant_of_shape),
    "Tile": ("repeats", _tile),
    "Slice": ("end", _slice),
}


def _pinning_nodes(model: onnx.ModelProto) -> list[Baked]:
    constants = integer_constants(model)
    shapes = _inferred_shapes(model)
    varying = _varying_inputs(model)
    found = []
    for node in model.graph.node:
        if any(name in varying for name in node.input):
            varying.update(node.output)
        if node.op_type in _RULES and is_standard(node):
            word, rule = _RULES[node.op_type]
            if constant := rule(_NodeView(node, constants, shapes, varying)):
                found.append(_baked_by(node, word, constant))
    return found


def _baked_by(node: onnx.NodeProto, word: str, constant: tuple[int, ...]) -> Baked:
    name = node.name or (node.output[0] if node.output else "")
    sentence = f"{node.op_type} node `{name}` has the constant {word} {list(constant)}"
    return Baked(sentence, name, node.op_type, constant, _source_of(node))


def _varying_inputs(model: onnx.ModelProto) -> set[str]:
    fixed = {tensor.name for tensor in model.graph.initializer}
    return {
        value.name
        for value in model.graph.input
        if value.name not in fixed and not all(d.HasField("dim_value") for d in value.type.tensor_type.shape.dim)
    }


def _inferred_shapes(model: onnx.ModelProto) -> dict[str, Axes]:
    """Value name -> axes, as far as ONNX's own inference knows them."""
    if any(map(_contradicts_itself, stored_tensors(model.graph, *model.functions))):
        return {}  # onnx 1.18 reads beyond the end of such a tensor, and the process ends
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > budgets.MOST_BYTES_READ_FOR_BAKED:
            tensor.ClearField("raw_data")
    if model.ByteSize() > budgets.MOST_BYTES_TO_INFER:
        return {}
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001  whatever is wrong with the graph, nothing is known about its shapes
        return {}
    values = (*model.graph.input, *model.graph.value_info, *model.graph.output)
    return {port.name: port.axes for port in map(port_of, values) if port.axes is not None}


def _contradicts_itself(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor holds another number of elements than it says, in bytes or as whole numbers."""
    count = math.prod(tensor.dims)
    if tensor.raw_data:
        try:
            expected = math.ceil(count * ir.DataType(tensor.data_type).itemsize)
        except (ValueError, TypeError):  # a type that nobody knows, or texts, which have no bytes of their own
            return True
        return bool(len(tensor.raw_data) != expected)
    is_inside = tensor.data_location != onnx.TensorProto.EXTERNAL
    return bool(is_inside and tensor.data_type == onnx.TensorProto.INT64 and len(tensor.int64_data) != count)


# ---- where a node came from

_STACK_KEY = "pkg.torch.onnx.stack_trace"
"""Where torch's exporter notes the stack, in a file that we did not finish."""
_STACK_LINE = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')


def _source_of(node: onnx.NodeProto) -> str:
    """The user's line of a node; of a path only the part that is the same on every machine."""
    entries: dict[str, str] = {entry.key: entry.value for entry in node.metadata_props}
    if SOURCE_KEY in entries:
        return entries[SOURCE_KEY]
    found = _STACK_LINE.findall(entries.get(_STACK_KEY, ""))
    frames = [(_portable_path(file), line, function) for file, line, function in found]
    own = [frame for frame in frames if not frame[0].startswith("torch/")]
    return "{}:{} in {}".format(*own[-1]) if own else ""


def _portable_path(file: str) -> str:
    """The path below the folder of packages, or the bare file name."""
    path = PureWindowsPath(file) if "\\" in file else PurePosixPath(file)
    for folder in ("site-packages", "dist-packages"):
        if folder in path.parts:
            return "/".join(path.parts[path.parts.index(folder) + 1 :])
    return path.name


def integer_constants(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Value name -> its numbers, for short constants of whole numbers; what cannot be read is left out."""
    found: dict[str, tuple[int, ...]] = {}
    for graph in proto_graphs(model):
        found |= {t.name: numbers for t in graph.initializer if (numbers := _numbers_of_tensor(t)) is not None}
        for node in graph.node:
            if node.op_type == "Constant" and node.output and (numbers := _numbers_of_constant(node)) is not None:
                found[node.output[0]] = numbers
    return found


def _numbers_of_constant(node: onnx.NodeProto) -> tuple[int, ...] | None:
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.HasField("t"):
            return _numbers_of_tensor(attribute.t)
        if attribute.name == "value_int":
            return (int(attribute.i),)
        if attribute.name == "value_ints" and len(attribute.ints) <= budgets.MOST_NUMBERS_OF_A_SIZE_CONSTANT:
            return tuple(int(number) for number in attribute.ints)
    return None


def _numbers_of_tensor(tensor: onnx.TensorProto) -> tuple[int, ...] | None:
    if tensor.external_data or any(n < 0 for n in tensor.dims):
        return None
    try:
        return integers_in(ir.serde.deserialize_tensor(tensor), budgets.MOST_NUMBERS_OF_A_SIZE_CONSTANT)
    except Exception:  # noqa: BLE001  a file is data: a tensor that contradicts itself has no numbers
        return None


def sizes_written(model: onnx.ModelProto) -> tuple[int, ...]:
    """The sizes that stand in a file by whomever: its short constants first, then the lengths of its tables."""
    written = {n for numbers in integer_constants(model).values() for n in _positive(numbers)}
    tables = {n for graph in proto_graphs(model) for t in graph.initializer for n in _positive(t.dims) if n > 1}
    return (*sorted(written), *sorted(tables - written))


def integers_of(model: ir.Model) -> tuple[int, ...]:
    """The same of a model in memory, whose weights are known: their lengths count channels and are left out."""
    tensors = [value.const_value for value in model.graph.initializers.values() if not _is_weight(value)]
    written: set[int] = set()
    for node in every_node(model.graph):
        for attribute in node.attributes.values():
            if not isinstance(attribute, ir.Attr):
                continue
            if attribute.type == ir.AttributeType.TENSOR:
                tensors.append(attribute.value)
            elif node.op_type == "Constant" and attribute.type in (ir.AttributeType.INT, ir.AttributeType.INTS):
                written |= _positive(np.ravel(attribute.value))
    lengths: set[int] = set()
    for tensor in (tensor for tensor in tensors if tensor is not None):
        lengths.update(size for size in tensor.shape if isinstance(size, int) and size > 1)
        if not isinstance(tensor, ir.ExternalTensor):
            written |= _positive(integers_in(tensor, budgets.MOST_NUMBERS_OF_A_SIZE_CONSTANT) or ())
    return (*sorted(written), *sorted(lengths - written))


_WEIGHTED = {
    "Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "InstanceNormalization", "LayerNormalization",
    "RMSNormalization", "RNN", "LSTM", "GRU",
}  # fmt: skip


def _is_weight(value: ir.Value) -> bool:
    """Whether it is used as the weight of layers alone: its lengths count channels, and no size that varies."""
    uses = value.uses()
    return bool(uses) and all(use.node.op_type in _WEIGHTED and use.idx > 0 for use in uses)


def _positive(numbers: Iterable[int]) -> set[int]:
    return {int(number) for number in numbers if 0 < int(number) < budgets.LARGEST_SIZE_WRITTEN_IN_A_FILE}


# ---- numbers that have to do with sizes

_OF_SIZES = {"Shape", "Size"}
_BY_FIRST_INPUT = {
    "Cast", "CastLike", "ConstantOfShape", "CumSum", "Expand", "Gather", "Identity", "NonZero", "ReduceMax",
    "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
}  # fmt: skip
"""Operators that give on what they are given first, in another form."""
_COMPUTED = {
    "Abs", "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Ceil", "Clip", "Concat", "Div", "Equal",
    "Floor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or",
    "Pow", "Range", "Round", "Sign", "Sqrt", "Sub", "Trunc", "Where", "Xor",
}  # fmt: skip


def size_literals(model: ir.Model) -> set[int]:
    """Whole numbers that sizes are compared with or computed with, and those at which an axis is cut."""
    found: set[int] = set()
    sized: set[ir.Value | None] = set()
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        for node in every_node(graph):
            numbers = [_whole_numbers_of(value) for value in node.inputs]
            varying = [value for value, one in zip(node.inputs, numbers, strict=True) if value and one is None]
            is_computed = node.op_type in _COMPUTED and bool(varying) and sized.issuperset(varying)
            is_passed_on = node.op_type in _BY_FIRST_INPUT and node.inputs[0] in sized
            if is_computed or is_passed_on or node.op_type in _OF_SIZES:
                sized |= set(node.outputs)
            if is_computed and node.op_type != "Concat":  # which puts sizes beside those of weights
                found |= _positive(abs(n) for one in numbers for n in one or ())
            elif node.op_type == "Slice":
                found |= _positive(abs(n) for one in numbers[1:3] for n in one or ())
    return found


def _whole_numbers_of(value: ir.Value | None) -> tuple[int, ...] | None:
    """The whole numbers of a short constant of any type; None where it is no constant, or a long one."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.size > budgets.MOST_NUMBERS_OF_A_SIZE_CONSTANT or isinstance(tensor, ir.ExternalTensor):
        return None
    numbers = np.asarray(tensor.numpy()).ravel()
    return tuple(int(n) for n in numbers if numbers.dtype.kind in "iuf" and np.isfinite(n) and int(n) == n)
