"""A file that holds operators which Python computes: its other nodes run in ONNX Runtime, in parts between these.

A part is everything that can run before the next function has to be called. The types of what passes between parts are
those that really came, so parts are loaded when they are first reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.inliner
import onnx.numpy_helper

from anyshape.errors import DeclarationError, first_line
from anyshape.runtime.session import RuntimeFailureError, Session

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


class PartedSession(Session):
    """One file, run in parts, with Python functions for some of its operators (`domain::Operator`)."""

    def __init__(
        self,
        model: onnx.ModelProto,
        functions: Mapping[str, Function],
        folder: Path | None,
        *,
        providers: Sequence[str] | None = None,
        libraries: Sequence[str] = (),
    ) -> None:
        self._functions, self._folder = functions, folder
        self._providers, self._libraries = providers, libraries
        # a call inside of a function cannot be parted from what stands around it
        self._model = onnx.inliner.inline_local_functions(model) if model.functions else model
        _refuse_inner(self._model.graph, functions)
        self._steps = _steps_of(self._model.graph, functions)
        weights = {tensor.name for tensor in self._model.graph.initializer}
        self.inputs = {v.name: ("", ()) for v in self._model.graph.input if v.name not in weights}
        self.outputs = tuple(value.name for value in self._model.graph.output)
        self._loaded: dict[tuple[Any, ...], Session] = {}

    def reopened(self, model: bytes) -> Session:
        proto = onnx.load_model_from_string(model)
        return PartedSession(proto, self._functions, self._folder, providers=self._providers, libraries=self._libraries)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        values = {name: feeds[name] for name in self.inputs}
        for index, step in enumerate(self._steps):
            if step.function is None:
                values |= self._run_part(index, step, values)
            else:
                values |= _results_of_function(step.nodes[0], step.function, values)
        if missing := [name for name in self.outputs if name not in values]:
            raise RuntimeFailureError(f"`{missing[0]}` is computed by no node")
        return [values[name] for name in self.outputs]

    def _run_part(self, index: int, step: _Step, values: Mapping[str, Array]) -> dict[str, Array]:
        given = {name: values[name] for name in step.reads if name in values}
        # the same part may get other types at another call: a function gives what it likes
        key = (index, *(array.dtype.str for array in given.values()))
        if key not in self._loaded:
            self._loaded[key] = Session(
                _model_of_step(self._model, step, given), providers=self._providers, libraries=self._libraries,
                folder=self._folder,
            )  # fmt: skip
        results = self._loaded[key].run(given)
        found = dict(zip(step.gives, results, strict=True))
        if odd := [name for name, result in found.items() if not isinstance(result, np.ndarray)]:
            raise RuntimeFailureError(f"`{odd[0]}` is no tensor, and cannot pass between parts of the file")
        return found


@dataclass
class _Step:
    """Nodes that run together in ONNX Runtime, or the one node that a Python function computes."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    function: Function | None = None
    reads: list[str] = field(default_factory=list)
    gives: list[str] = field(default_factory=list)


def _steps_of(graph: onnx.GraphProto, functions: Mapping[str, Function]) -> list[_Step]:
    """The nodes in rounds: as much as can run, then the functions whose inputs are there, and so on."""
    rounds: dict[int, tuple[_Step, list[_Step]]] = {}
    known: dict[str, int] = {}
    for node in graph.node:
        number = max((known.get(name, 0) for name in _read_by(node)), default=0)
        part, calls = rounds.setdefault(number, (_Step(), []))
        function = functions.get(f"{node.domain}::{node.op_type}")
        if function is None:
            part.nodes.append(node)
        else:
            calls.append(_Step([node], function))
        known |= dict.fromkeys(node.output, number if function is None else number + 1)
    steps = [step for _, (part, calls) in sorted(rounds.items()) for step in (part, *calls) if step.nodes]
    _connect_steps(steps, [value.name for value in graph.output])
    return steps


def _connect_steps(steps: Sequence[_Step], outputs: Iterable[str]) -> None:
    """What each step needs from outside, and what others need of it."""
    for step in steps:
        own = {name for node in step.nodes for name in node.output}
        step.reads = list(dict.fromkeys(n for node in step.nodes for n in _read_by(node) if n and n not in own))
    for step in steps:
        wanted = {*outputs, *(name for other in steps if other is not step for name in other.reads)}
        step.gives = [name for node in step.nodes for name in node.output if name in wanted]


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node reads, those that its inner graphs take from outside included."""
    yield from node.input
    for graph in _graphs_in(node):
        for inner in graph.node:
            yield from _read_by(inner)
        yield from (value.name for value in graph.output)


def _graphs_in(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs)]


def _refuse_inner(
    graph: onnx.GraphProto, functions: Mapping[str, Function], holder: onnx.NodeProto | None = None
) -> None:
    for node in graph.node:
        name = f"{node.domain}::{node.op_type}"
        if holder is not None and name in functions:
            raise DeclarationError(
                f"`{name}` stands inside a {holder.op_type} node, where no Python function can be called: "
                "give a library for ONNX Runtime"
            )
        for inner in _graphs_in(node):
            _refuse_inner(inner, functions, node)


def _model_of_step(model: onnx.ModelProto, step: _Step, given: Mapping[str, Array]) -> bytes:
    """The nodes of a step as a model of their own."""
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), None)
        for name, array in given.items()
    ]
    weights = [tensor for tensor in model.graph.initializer if tensor.name in step.reads and tensor.name not in given]
    sparse = [tensor for tensor in model.graph.sparse_initializer if tensor.values.name in step.reads]
    outputs = [onnx.ValueInfoProto(name=name) for name in step.gives]
    graph = onnx.helper.make_graph(step.nodes, "part", inputs, outputs, weights, sparse_initializer=sparse)
    part = onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return bytes(part.SerializeToString())


def _results_of_function(node: onnx.NodeProto, function: Function, values: Mapping[str, Array]) -> dict[str, Array]:
    """A node's outputs by its function, on copies: it may change what it is given."""
    name = f"{node.domain}::{node.op_type}"
    arrays = [values[one].copy() if one else None for one in node.input]
    try:
        results = function(*arrays, **{attribute.name: _attribute_value(attribute) for attribute in node.attribute})
    except Exception as error:
        raise RuntimeFailureError(f"`{name}` in Python: {type(error).__name__}: {first_line(error)}") from error
    results = results if isinstance(results, (tuple, list)) else (results,)
    if len(results) < len(node.output):
        raise RuntimeFailureError(f"`{name}` in Python gives {len(results)} results, the file has {len(node.output)}")
    pairs = zip(node.output, results, strict=False)
    return {output: np.ascontiguousarray(result).reshape(np.shape(result)) for output, result in pairs if output}


def _attribute_value(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (list, tuple)) or attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
        return [one.decode() if isinstance(one, bytes) else one for one in value]
    return value
