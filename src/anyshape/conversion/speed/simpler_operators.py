"""Operators of a program that torch's translation does not take, each replaced by itself; the rest stays as it was
traced. torch would run the whole program again for the sake of one of them.

An operator without a translation is traced by itself, on what its node is given, and its nodes take the place of the
one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from anyshape.source.live_code import LOCK
from anyshape.torchkit.private_names import OpOverload, lookup
from anyshape.torchkit.schemas import writes


def inline(graph: fx.Graph, nodes: Collection[fx.Node], table: Mapping[Any, Any]) -> bool:
    """Replace these nodes, in place; False where one of them cannot be, and the graph is of no use any more.

    `table` says what operators are made of.
    """
    try:
        return all(_replaces_node(graph, node, table) for node in nodes)
    except Exception:  # noqa: BLE001  torch takes the whole program apart instead
        return False


_READ = lookup("torch.ops.aten._local_scalar_dense")
_OTHER_NAMES: Mapping[Any, Any] = {} if _READ is None else {torch.ops.aten.item.default: _READ.default}
"""What does the very same under another name: a number that is read has a symbol, and may not be read anew."""


def _replaces_node(graph: fx.Graph, node: fx.Node, table: Mapping[Any, Any]) -> bool:
    if (same := _OTHER_NAMES.get(node.target)) is not None:
        node.target = same
        return True
    is_plain = "val" in node.meta and "unbacked_bindings" not in node.meta
    if not isinstance(node.target, OpOverload) or writes(node.target) or not is_plain:
        return False
    given = node.all_input_nodes
    if any(is_complex(one.meta["val"]) for one in given):
        return False  # complex numbers are translated as pairs, whose sizes are not those that the trace asks for
    body = _body_of(node, [one.meta["val"] for one in given], table)
    if any(one.op not in ("placeholder", "call_function", "output") for one in body.nodes):
        return False  # a constant would have to become an input of the program
    if any(one.target is node.target for one in body.nodes):
        return False
    return _gives_results(graph, node, _insert_before(graph, node, body, given))


def is_complex(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_complex()


def _body_of(node: fx.Node, values: list[Any], table: Mapping[Any, Any]) -> fx.Graph:
    """The operator on values as those that its node is given, written in simpler ones."""
    mode_of = lookup("torch._guards.detect_fake_mode")
    places = {one: place for place, one in enumerate(node.all_input_nodes)}

    def call(*values: Any) -> Any:
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda one: values[places[one]])
        target: Callable[..., Any] = node.target  # type: ignore[assignment]
        return target(*args, **kwargs)

    with LOCK, mode_of(values), lookup("torch._dispatch.python.enable_python_dispatcher")():
        functional: Any = torch.func.functionalize(call, remove="mutations")
        return make_fx(functional, decomposition_table=dict(table))(*values).graph


def _insert_before(graph: fx.Graph, node: fx.Node, body: fx.Graph, given: list[fx.Node]) -> Any:
    """The nodes of the body before the node whose place they take, said to come from its line; their results."""
    inside = dict(zip((one for one in body.nodes if one.op == "placeholder"), given, strict=True))
    origin = {name: entry for name, entry in node.meta.items() if name not in ("val", "tensor_meta")}
    with graph.inserting_before(node):
        for one in body.nodes:
            if one.op == "call_function":
                inside[one] = graph.node_copy(one, lambda used: inside[used])
                inside[one].meta = {**origin, **{k: v for k, v in one.meta.items() if k in ("val", "tensor_meta")}}
    return fx.map_arg(body.output_node().args[0], lambda one: inside[one])


def _gives_results(graph: fx.Graph, node: fx.Node, results: Any) -> bool:
    """Give the results to whoever used the node; several are picked by their number."""
    if isinstance(results, fx.Node):
        node.replace_all_uses_with(results)
    else:
        picked = list(node.users)
        if any(user.target is not operator.getitem for user in picked):
            return False
        for user in picked:
            user.replace_all_uses_with(results[user.args[1]])
            graph.erase_node(user)
    graph.erase_node(node)
    return True
