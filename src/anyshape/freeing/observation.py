"""A file made ready for the walk: a clone of one's own, sound enough for it, and the shape of every tensor in it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass, LiftConstantsToInitializersPass, RemoveUnusedNodesPass

from anyshape.errors import AnyshapeError, first_line
from anyshape.onnxfile.graph import attribute, graphs_in, is_op
from anyshape.runtime.confinement import StoppedError, open_runtime_session
from anyshape.runtime.made_up_inputs import is_mask, make_inputs
from anyshape.runtime.opening import Opening
from anyshape.sizes import budgets


def prepared(model: ir.Model) -> ir.Model:
    """A clone that shares the weights; whatever cannot be walked is refused in one sentence."""
    _refuse_unsound(model.graph)
    try:
        clone = model.clone()
        if clone.functions:
            InlinePass()(clone)
        clone.graph.sort()
        LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(clone)
        RemoveUnusedNodesPass()(clone)
    except Exception as error:
        raise AnyshapeError(f"the graph cannot be put in order: {_root_cause(error)}") from error
    if not clone.opset_imports.get("") and not clone.opset_imports.get("ai.onnx"):
        raise AnyshapeError("the file names no opset of ONNX")
    clone.opset_imports.setdefault("", clone.opset_imports.get("ai.onnx", 1))
    forget_shapes(clone)
    return clone


def _root_cause(error: BaseException) -> str:
    """What was at the root of it, first line only."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _refuse_unsound(graph: ir.Graph, outer: frozenset[str] = frozenset(), depth: int = 0) -> None:
    """Two values of one name cannot be told apart, and graphs inside of graphs without end cannot be walked."""
    if depth > budgets.DEEPEST_BODY:
        raise AnyshapeError("the graphs inside of this file are nested too deeply")
    seen = set(outer)
    _note_names(graph.inputs, seen)
    known = {*seen, *(str(name) for name in graph.initializers)}
    for node in graph:
        for value in node.inputs:
            if value is not None and value.name not in known:
                raise AnyshapeError(f"`{value.name}` is used before any node gives it: it is missing, or in a cycle")
        for body in graphs_in(node):
            _refuse_unsound(body, frozenset(known), depth + 1)
        _note_names(node.outputs, seen)
        known |= {value.name or "" for value in node.outputs}


def _note_names(values: Sequence[ir.Value], seen: set[str]) -> None:
    for value in values:
        if value.name in seen:
            raise AnyshapeError(f"two values of the file are called `{value.name}`")
        seen |= {value.name} if value.name else set()


def forget_shapes(model: ir.Model) -> None:
    """What the file says about intermediate shapes was true for its own sizes only."""
    for graph in model.graphs():
        for value in (value for node in graph for value in node.outputs):
            value.shape = None


# ---- the shape of every tensor, from one run of ONNX Runtime
#
# Not the tensors are asked for but their shapes, by a Shape node behind each: so memory stays what a plain run takes,
# and weights beside the file are never read by us.

AxisSizes = Mapping[str, tuple[int, ...]]
"""The sizes of every axis of values, by name."""
_NO_TENSORS = {
    "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceMap", "SplitToSequence",
    "Optional", "OptionalGetElement", "ZipMap", "DictVectorizer", "CastMap",
}  # fmt: skip
"""Operators whose results have no shape to ask for."""
_SAME_VALUES = (
    "Cast", "Reshape", "Flatten", "Identity", "Unsqueeze", "Squeeze", "Transpose", "Expand", "Slice", "Clip",
)  # fmt: skip
"""What gives no other numbers than it gets, and so may stand between an input and the table that it indexes."""


def observe(model: ir.Model, shapes: AxisSizes, folder: Path | None) -> dict[str, tuple[int, ...]]:
    """Value -> its shape for inputs of these shapes, for every tensor of the main graph."""
    proto = ir.to_proto(model)
    asked = [value.name for value in _tensors(model.graph) if value.name]
    for index, name in enumerate(asked):
        proto.graph.node.append(onnx.helper.make_node("Shape", [name], [f"observed_shape_{index}"]))
    del proto.graph.value_info[:]
    if asked:
        del proto.graph.output[:]
    proto.graph.output.extend(
        onnx.helper.make_tensor_value_info(f"observed_shape_{index}", onnx.TensorProto.INT64, None)
        for index in range(len(asked))
    )
    found = _results_of_run(proto, feeds(model.graph, shapes), folder)
    return {name: tuple(map(int, shape)) for name, shape in zip(asked, found, strict=False)} | dict(shapes)


def _tensors(graph: ir.Graph) -> Iterator[ir.Value]:
    for node in graph:
        if any(inner.op_type in _NO_TENSORS for inner in (node, *(one for body in graphs_in(node) for one in body))):
            continue
        for value in node.outputs:
            if value.type is None or isinstance(value.type, ir.TensorType):
                yield value


def _results_of_run(proto: onnx.ModelProto, given: Mapping[str, Any], folder: Path | None) -> list[Any]:
    where = None if folder is None else str(folder)
    # packing would copy weights
    opening = Opening(proto.SerializeToString(), folder=where, is_optimised=False, is_packed=False)
    try:
        return list(open_runtime_session(opening).run(None, dict(given)))
    except StoppedError:
        raise
    except Exception as error:
        raise AnyshapeError(f"ONNX Runtime cannot run the file: {first_line(error)[:300]}") from error


# ---- inputs


def feeds(graph: ir.Graph, shapes: AxisSizes) -> dict[str, Any]:
    """Random tensors that the file takes: indices below the length of their table, masks of ones."""
    given = {str(value.name): value for value in graph.inputs if value.name not in graph.initializers}

    def drawn(chance: np.random.Generator, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        _refuse_odd_shape(name, shape)
        if given[name].dtype == ir.DataType.STRING:
            return np.full(shape, "a", dtype=object)
        if "float" in dtype.name:
            return chance.standard_normal(shape, dtype=np.float32)
        return np.ones(shape) if is_mask(name, dtype.name) else chance.integers(0, table_length(given[name]), shape)

    types = ((name, _numpy_type(value)) for name, value in given.items())
    return make_inputs(types, shapes, np.random.default_rng(0), drawn)


def _numpy_type(value: ir.Value) -> np.dtype[Any]:
    if value.dtype is None:
        raise AnyshapeError(f"input `{value.name}` is no tensor, or has no type")
    return np.dtype(object) if value.dtype == ir.DataType.STRING else value.dtype.numpy()


def _refuse_odd_shape(name: str, shape: tuple[int, ...]) -> None:
    if any(n < 0 for n in shape):
        raise AnyshapeError(f"input `{name}` has the shape {list(shape)}, and no size is negative")
    if math.prod(shape) > budgets.LARGEST_FEED:
        raise AnyshapeError(f"input `{name}` has the shape {list(shape)}, which is too large to run")


def table_length(value: ir.Value) -> int:
    """The rows of the shortest constant that the value's numbers index; 2 where they index none."""
    lengths, waiting, seen = [], [value], {value}
    while waiting:
        for node, place in waiting.pop().uses():
            rows = _rows_of_table(node) if place == 1 else None
            lengths += [rows] if rows else []
            if node.op_type in _SAME_VALUES and place == 0 and node.outputs[0] not in seen:
                seen.add(node.outputs[0])
                waiting.append(node.outputs[0])
    return min(lengths, default=2)


def _rows_of_table(node: ir.Node) -> int | None:
    table = node.inputs[0]
    if not is_op(node, "Gather") or table is None or table.const_value is None:
        return None
    length = table.const_value.shape[attribute(node, "axis", 0)]
    return length if isinstance(length, int) else None


def guesses(open_axes: Sequence[str]) -> Iterator[dict[str, int]]:
    """Sizes to try for axes that the file itself leaves open: different ones first, then what most files can do."""
    different = itertools.chain((3, 5, 7, 11, 13), itertools.count(17, 2))
    yield dict(zip(open_axes, different, strict=False))
    for size in (1, 2, 16, 32, 64, 128, 224):
        yield dict.fromkeys(open_axes, size)
