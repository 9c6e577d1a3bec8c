"""The words in which translations are written: `op.Add(left, right)` adds a node to the graph in work.

Beside ONNX's operators these are sizes at run time, constants of a value's own type, runs of whole numbers, and a loop.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import onnx_ir as ir
import onnxscript.evaluator
from onnxscript import opset18

from anyshape.torchkit.patches import patched


class _Operators(Protocol):
    """Every operator of ONNX gives one value; these give several."""

    Split: Callable[..., tuple[ir.Value, ...]]
    TopK: Callable[..., tuple[ir.Value, ir.Value]]

    def __getattr__(self, name: str) -> Callable[..., ir.Value]: ...


# typed for onnxscript's own compiler, which takes other values than a table of torch's does
op = cast(_Operators, opset18)

COMPLEX = "complex "
"""Before the name of an operator: the translation for complex values, which are real ones with one more axis of two."""

INT64 = ir.DataType.INT64
FLOAT = ir.DataType.FLOAT
DOUBLE = ir.DataType.DOUBLE
BOOL = ir.DataType.BOOL


# ---- sizes and axes


def rank(value: ir.Value) -> int:
    """Of a value that torch's graph holds: its rank is always known."""
    assert value.shape is not None
    return len(value.shape)


def from_front(axis: int, value: ir.Value) -> int:
    return axis % max(rank(value), 1)


def static_size(value: ir.Value, axis: int) -> int | None:
    """The size of an axis that cannot vary, or None."""
    assert value.shape is not None
    size = value.shape[axis]
    return size if isinstance(size, int) else None


def is_size_of(size: int | ir.Value, value: ir.Value, axis: int) -> bool:
    """Whether a number of the program is just the size of this axis."""
    if not isinstance(size, ir.Value):
        return size == static_size(value, axis)
    node = size.producer()
    if node is not None and node.op_type in ("Squeeze", "Reshape") and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    if node is None or node.op_type != "Shape" or node.inputs[0] is not value:
        return False
    return node.attributes.get_int("start", 0) == axis and node.attributes.get_int("end", rank(value)) == axis + 1


def size_of(value: ir.Value, axis: int) -> ir.Value:
    """The size of an axis at run time, as a vector of one."""
    return op.Shape(value, start=axis, end=axis + 1)


def for_each_axis(given: Any, axes: int) -> list[Any]:
    """One number for every axis where one is given for all."""
    numbers = list(given) if isinstance(given, tuple | list) else [given]
    return numbers * axes if len(numbers) == 1 else numbers


# ---- numbers


def whole(*numbers: int) -> ir.Value:
    """A vector of whole numbers."""
    return op.Constant(value=ir.tensor(list(numbers), dtype=INT64))


def number(value: float | ir.Value, like: ir.Value) -> ir.Value:
    """A number without axes, of the type of `like`."""
    if not isinstance(value, ir.Value) and like.dtype is not None:
        return literal(value, like.dtype)
    return op.CastLike(value if isinstance(value, ir.Value) else exact(value), like)


def literal(value: float, dtype: ir.DataType | None = INT64) -> ir.Value:
    """A number without axes, of a type that is known."""
    return op.Constant(value=ir.tensor(value, dtype=dtype))


def exact(value: float) -> ir.Value:
    """A number without axes, in double."""
    return literal(float(value), DOUBLE)


def bits(on_truths: Callable[..., Any], on_numbers: Callable[..., Any], left: Any, right: Any) -> Any:
    """`n & 64`, `64 & n`, `flags | True`: torch's translation asks a literal for its type, which is that of the other
    side.
    """
    like = left if isinstance(left, ir.Value) else right
    left, right = (one if isinstance(one, ir.Value) else number(one, like) for one in (left, right))
    return (on_truths if like.dtype == BOOL else on_numbers)(left, right)


def as_vector(size: int | ir.Value) -> ir.Value:
    """A number of the program, a literal or a size, as a vector of one."""
    return op.Reshape(size, whole(1)) if isinstance(size, ir.Value) else whole(size)


def as_scalar(size: int | ir.Value) -> ir.Value:
    """The same without axes."""
    # made in any case: values in a file are numbered, those that nobody uses among them
    scalar = op.Reshape(size, whole())
    return scalar if isinstance(size, ir.Value) else literal(size)


def vector(sizes: Sequence[int | ir.Value] | ir.Value) -> ir.Value:
    """A list of literals and sizes as one vector."""
    if isinstance(sizes, ir.Value):
        return sizes
    if all(not isinstance(size, ir.Value) for size in sizes):
        return whole(*sizes)  # type: ignore[arg-type]
    return op.Concat(*(as_vector(size) for size in sizes), axis=0)


def counted(length: int | ir.Value) -> ir.Value:
    """0, 1, 2, ... as many as `length`."""
    zero, one = literal(0), literal(1)
    return op.Range(zero, as_scalar(length), one)


# ---- values in another order


def flipped(value: Any, axes: int) -> Any:
    """The last two of so many axes exchanged."""
    return op.Transpose(value, perm=[*range(axes - 2), axes - 1, axes - 2])


def moved(value: ir.Value, source: int, target: int, axes: int) -> ir.Value:
    """The same values with one of so many axes in another place."""
    if source == target:
        return value
    order = [axis for axis in range(axes) if axis != source]
    order.insert(target, source)
    return op.Transpose(value, perm=order)


# ---- nodes that onnxscript does not make, and a loop


def record(operator: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any], outputs: int) -> list[Any]:
    """A node with as many outputs as are wanted; onnxscript knows only operators whose number of outputs is fixed."""
    node = ir.Node("", operator, inputs, ir.convenience.convert_attributes(attributes), num_outputs=outputs)
    recorder: Any = onnxscript.evaluator.default()
    recorder.nodes.append(node)
    return list(node.outputs)


Values = Sequence[Any]
"""Of ONNX, in the order of a node's or a graph's inputs or outputs."""


def scan(begin: Values, scanned: Values, inputs: Values, step: Callable[..., Any], **directions: Any) -> list[Any]:
    """An ONNX Scan over the first axis: `step` makes the new states and the outputs of `inputs`, the body's own.

    What comes back are the last states, then the outputs of all steps, stacked.
    """
    # nodes of the body go to a list of their own, and not to the graph
    nodes: list[ir.Node] = []
    with patched(onnxscript.evaluator.default(), "nodes", nodes):
        outputs = step(*inputs)
    graph = ir.Graph(inputs, outputs, nodes=nodes, name="step")
    attributes = {"body": graph, "num_scan_inputs": len(scanned), **directions}
    return record("Scan", [*begin, *scanned], attributes, len(outputs))


def scanned(
    begin: Values, sequences: Values, types: Sequence[Any], step: Callable[..., Values], *, last: bool = False
) -> list[Any]:
    """A Scan whose steps are given by a function; `types` are those of the states, then those of what is scanned.

    `step` returns the new states and, if it has others than these, the outputs. What comes back are the outputs of all
    steps, stacked, or the `last` states.
    """
    states = len(begin)
    before = [ir.Value(name=f"before_{i}", type=ir.TensorType(kind)) for i, kind in enumerate(types[:states])]
    slices = [ir.Value(name=f"slice_{i}", type=ir.TensorType(kind)) for i, kind in enumerate(types[states:])]

    def body(*values: Any) -> list[Any]:
        results = list(step(*values))
        if last:
            return results[:states]
        return results if len(results) > states else [*results, *(op.Identity(state) for state in results)]

    found = scan(begin, sequences, [*before, *slices], body)
    return found[:states] if last else found[states:]


def torchs_translation(place: str) -> Callable[..., Any]:
    """Torch's own translation of an operator, by its module and name: `core.aten_histc`."""
    module, _, name = place.partition(".")
    # one of hundreds; a module that has moved concerns those alone who need it
    library = importlib.import_module(f"onnxscript.function_libs.torch_lib.ops.{module}")
    function: Callable[..., Any] = getattr(library, name)
    return function
