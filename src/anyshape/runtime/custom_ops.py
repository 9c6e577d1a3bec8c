"""Operators that ONNX Runtime lacks: which ones a file holds, and what computes them for a check.

A library for ONNX Runtime computes them inside it; a Python function computes them between parts of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from anyshape.errors import DeclarationError
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.runtime.split_session import PartedSession
from anyshape.source.spans import Span, span_of_node

Function = Callable[..., Any]


@dataclass(frozen=True)
class CustomOps:
    """What computes operators that the runtime lacks: libraries for it, and Python functions by `domain::Operator`."""

    libraries: tuple[str, ...] = ()
    functions: Mapping[str, Function] = field(default_factory=dict)

    def open(self, model: Path, providers: Sequence[str] | None = None) -> Session:
        """The model loaded, in parts where it holds operators with a Python function."""
        proto = onnx.load(model, load_external_data=False) if self.functions else onnx.ModelProto()
        held = {name for name, _ in _named_nodes(proto)}
        functions = {name: function for name, function in self.functions.items() if name in held}
        if not functions:
            return Session(model, providers=providers, libraries=self.libraries)
        if not self.libraries and (left := unknown_operators(proto, self)):
            # parts are loaded when they are reached, which would be too late to say so
            raise RuntimeFailureError(f"ONNX Runtime has no {left[0].name}")
        return PartedSession(proto, functions, model.parent, providers=providers, libraries=self.libraries)

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
            functions |= {
                _operator_name(name): function_of(one[name]) or _checked_function(name, one[name]) for name in one
            }
        elif isinstance(one, (str, os.PathLike)):
            libraries.append(os.fspath(one))
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
        raise DeclarationError(
            f"custom_ops: {name!r} is given a {type(function).__name__}: give a function of numpy arrays"
        )
    return function  # type: ignore[no-any-return]


# ---- what a file holds


@dataclass(frozen=True)
class UnknownOperator:
    """An operator that the runtime does not have: its name, what it is called with, and the user's line, if known."""

    name: str
    arguments: tuple[str, ...]
    span: Span | None


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
    for node in _nodes_inside([model.graph.node, *(function.node for function in model.functions)]):
        yield f"{node.domain}::{node.op_type}", node


def _nodes_inside(levels: Iterable[Iterable[onnx.NodeProto]]) -> Iterator[onnx.NodeProto]:
    for nodes in levels:
        for node in nodes:
            yield node
            graphs = [graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs)]
            yield from _nodes_inside(graph.node for graph in graphs)
