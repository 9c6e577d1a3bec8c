"""What a file would become in memory, found by arithmetic before anything of it grows; too much is one sentence."""

from __future__ import annotations

import graphlib
import itertools
from collections.abc import Iterator

import onnx

from anyshape.errors import DeclarationError
from anyshape.onnxfile.graph import ProtoGraph, graphs_within, proto_graphs
from anyshape.sizes import budgets

_Key = tuple[str, str, str]


def refuse_endless_growth(model: onnx.ModelProto, name: str) -> None:
    """Too many nodes, as they stand or once functions are expanded, and tensors of too many axes."""
    most = budgets.MOST_NODES
    stand = len(model.functions) + sum(len(graph.node) for graph in (model.graph, *model.functions))
    if stand <= most:  # else there is no need to look into each of them
        stand = len(model.functions) + sum(len(graph.node) for graph in graphs_within(model.graph, *model.functions))
    if stand > most:
        raise DeclarationError(f"`{name}` has {stand:,} nodes, more than the {most:,} that are read")
    try:
        expanded = _nodes_once_expanded(model)
    except graphlib.CycleError:
        raise DeclarationError(f"a function of `{name}` calls itself: refused") from None
    if expanded > most:
        shown = f"{expanded:,}" if expanded < 10**12 else f"10^{len(str(expanded)) - 1}"
        raise DeclarationError(
            f"the functions of `{name}` expand to {shown} nodes, more than the {most:,} that are read"
        )
    for tensor, rank in _ranks(model):
        if rank > budgets.MOST_AXES:
            raise DeclarationError(
                f"`{tensor}` of `{name}` has {rank:,} axes, more than the {budgets.MOST_AXES} of numpy"
            )


def _nodes_once_expanded(model: onnx.ModelProto) -> int:
    functions = {(one.domain, one.name, one.overload): one for one in model.functions}
    calls = {key: _functions_called(function, functions) for key, function in functions.items()}
    order = graphlib.TopologicalSorter({key: set(called) for key, called in calls.items()}).static_order()
    nodes: dict[_Key, int] = {}
    for key in order:
        nodes[key] = _count(functions[key], calls[key], nodes)
    return _count(model.graph, _functions_called(model.graph, functions), nodes)


def _functions_called(graph: ProtoGraph, functions: dict[_Key, onnx.FunctionProto]) -> list[_Key]:
    keys = ((node.domain, node.op_type, node.overload) for inner in graphs_within(graph) for node in inner.node)
    return [key for key in keys if key in functions]


def _count(graph: ProtoGraph, calls: list[_Key], nodes: dict[_Key, int]) -> int:
    return sum(len(inner.node) for inner in graphs_within(graph)) + sum(nodes[key] for key in calls)


def _ranks(model: onnx.ModelProto) -> Iterator[tuple[str, int]]:
    for graph in proto_graphs(model):
        for value in itertools.chain(graph.input, graph.output, graph.value_info):
            yield value.name, len(value.type.tensor_type.shape.dim)
        yield from ((tensor.name, len(tensor.dims)) for tensor in graph.initializer)
