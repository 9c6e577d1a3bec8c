"""Operators that ONNX Runtime lacks: which ones a file holds, and what computes them for a check.

A library for ONNX Runtime computes them inside it. A Python function computes them between parts of the file: a part is
everything that can run before the next function has to be called. The types of what passes between parts are those that
really came, so parts are loaded when they are first reached.
"""

from __future__ import annotations

import os
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
from anyshape.runtime.session import Array, RuntimeFailureError, Session
from anyshape.source.spans import Span, span_of_node

Function = Callable[..., Any]


@dataclass(frozen=True)
class CustomOps:
    """What computes operators that the runtime lacks: libraries for it, and Python functions by `domain::Operator`."""

    libraries: tuple[str, ...] = ()
    functions: Mapping[str, Function] = field(default_factory=dict)

    def open(self, model: Path | bytes, providers: Sequence[str] | None = None, folder: Path | None = None) -> Session:
        """The model loaded, in parts where it holds operators with a Python function; `folder` has weights of bytes."""
        proto = _proto_of(model) if self.functions else onnx.ModelProto()
        held = {name for name, _ in _named_nodes(proto)}
        functions = {name: function for name, function in self.functions.items() if name in held}
        if not functions:
            return Session(model, providers=providers, libraries=self.libraries, folder=folder)
        if not self.libraries and (left := unknown_operators(proto, self)):
            # parts are loaded when they are reached, which would be too late to say so
            raise RuntimeFailureError(f"ONNX Runtime has no {left[0].name}")
        beside = model.parent if isinstance(model, Path) else folder
        return PartedSession(proto, functions, folder=beside, providers=providers, libraries=self.libraries)

    def notes_on(self, model: onnx.ModelProto) -> list[str]:
        """Through what a file's own operators were computed, a sentence each."""
        notes = []
        for name in foreign_operators(model):
            if name in self.functions:
                called = getattr(self.functions[name], "__name__", type(self.functions[name]).__name__)
                notes.append(f"`{name}` was computed in Python by `{called}`")
            elif self.libraries:
                notes.append(f"`{name}` was computed by {' or '.join(Path(path).name for path in self.libraries)}")
        return notes


def _proto_of(model: Path | bytes) -> onnx.ModelProto:
    if isinstance(model, bytes):
        return onnx.load_model_from_string(model)
    return onnx.load(model, load_external_data=False)


def understand_custom_ops(given: Any, function_of: Callable[[Any], Function | None] = lambda _: None) -> CustomOps:
    """A list of libraries, a mapping from operators to functions, or a list that holds both; else one sentence.

    `function_of` makes a function of arrays of what is none by itself, such as an operator of torch.
    """
    if isinstance(given, str) or not isinstance(given, (Mapping, list, tuple, set, frozenset)):
        raise DeclarationError(f"custom_ops is {given!r}: give a list of libraries, or a dict of Python functions")
    libraries: list[str] = []
    functions: dict[str, Function] = {}
    for one in [given] if isinstance(given, Mapping) else given:
        if isinstance(one, Mapping):
            for name, value in one.items():
                functions[_operator_name(name)] = function_of(value) or _checked_function(name, value)
        elif isinstance(one, (str, os.PathLike)):
            # what is no file here may still be found by the system
            libraries.append(str(Path(one).absolute()) if Path(one).exists() else os.fspath(one))
        else:
            raise DeclarationError(f"custom_ops holds {one!r}: give the path of a library, or a dict of functions")
    return CustomOps(tuple(libraries), functions)


def _operator_name(name: Any) -> str:
    domain, separator, operator = str(name).partition("::")
    if not separator or not operator or not domain:
        raise DeclarationError(f"custom_ops: {name!r} names no operator: write 'domain::Operator'")
    return str(name)


def _checked_function(name: str, function: Any) -> Function:
    if not callable(function):
        what = type(function).__name__
        raise DeclarationError(f"custom_ops: {name!r} is given a {what}: give a function of numpy arrays")
    return function  # type: ignore[no-any-return]


# ---- what a file holds


@dataclass(frozen=True)
class UnknownOperator:
    """An operator that the runtime does not have: its name, what it is called with, and the user's line, if known."""

    name: str
    arguments: tuple[str, ...]
    span: Span | None
    dtype: str = ""
    """The type in which alone it is missing."""


_KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.training", "com.microsoft")


def foreign_operators(model: onnx.ModelProto) -> dict[str, onnx.NodeProto]:
    """Operators of domains that ONNX Runtime does not come with, each with its first node."""
    defined = {f"{function.domain}::{function.name}" for function in model.functions}
    found: dict[str, onnx.NodeProto] = {}
    for name, node in _named_nodes(model):
        if node.domain not in _KNOWN_DOMAINS and name not in defined:
            found.setdefault(name, node)
    return dict(sorted(found.items()))


def unknown_operators(model: onnx.ModelProto, custom_ops: CustomOps) -> list[UnknownOperator]:
    """Those of a file for which no Python function is given; whether a library has them, the runtime knows."""
    left = {name: node for name, node in foreign_operators(model).items() if name not in custom_ops.functions}
    return [UnknownOperator(name, _arguments_of(node), span_of_node(node)) for name, node in left.items()]


def _arguments_of(node: onnx.NodeProto) -> tuple[str, ...]:
    inputs = ("x",) if len(node.input) == 1 else tuple(f"x{index}" for index in range(len(node.input)))
    attributes = [attribute.name for attribute in node.attribute]
    return (*inputs, "*", *attributes) if attributes else inputs


def _named_nodes(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.NodeProto]]:
    """Every node of a file, inner graphs and functions included."""
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        yield from ((name, node) for name, node, _ in _nodes_inside(nodes))


def _nodes_inside(
    nodes: Iterable[onnx.NodeProto], holder: onnx.NodeProto | None = None
) -> Iterator[tuple[str, onnx.NodeProto, onnx.NodeProto | None]]:
    """Every node with the name of its operator, and the node in whose inner graph it stands, if any."""
    for node in nodes:
        yield f"{node.domain}::{node.op_type}", node, holder
        for graph in _graphs_in(node):
            yield from _nodes_inside(graph.node, node)


def _graphs_in(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs)]


# ---- a file in parts


class PartedSession(Session):
    """One file, run in parts, with Python functions for some of its operators (`domain::Operator`)."""

    def __init__(self, model: onnx.ModelProto, functions: Mapping[str, Function], **opening: Any) -> None:
        """`opening` is how the parts are opened: with which providers and libraries, and where their weights lie."""
        self._functions, self._opening = functions, opening
        # a call inside of a function cannot be parted from what stands around it
        self._model = onnx.inliner.inline_local_functions(model) if model.functions else model
        _refuse_inner(self._model.graph, functions)
        self._steps = _steps_of(self._model.graph, functions)
        weights = {tensor.name for tensor in self._model.graph.initializer}
        self.inputs = {v.name: ("", ()) for v in self._model.graph.input if v.name not in weights}
        self.outputs = tuple(value.name for value in self._model.graph.output)
        self._loaded: dict[tuple[Any, ...], Session] = {}

    def reopened(self, model: bytes) -> Session:
        return PartedSession(onnx.load_model_from_string(model), self._functions, **self._opening)

    def effort(self, feeds: Mapping[str, Array]) -> None:
        """Python's functions cannot be counted."""

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
            self._loaded[key] = Session(_model_of_step(self._model, step, given), **self._opening)
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


def _refuse_inner(graph: onnx.GraphProto, functions: Mapping[str, Function]) -> None:
    for name, _, holder in _nodes_inside(graph.node):
        if holder is not None and name in functions:
            raise DeclarationError(
                f"`{name}` stands inside a {holder.op_type} node, where no Python function can be called: "
                "give a library for ONNX Runtime"
            )


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
