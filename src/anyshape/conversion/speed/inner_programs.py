"""Programs inside of a program that only say that gradients or autocast are off: their nodes take the call's place.

torch would run the whole program again to take them out. A forward under `torch.no_grad` has one, and so has a layer
that keeps its precision under autocast.
"""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from anyshape.torchkit.private_names import lookup

_GRADIENTS = "torch.ops.higher_order.wrap_with_set_grad_enabled"
_AUTOCAST = "torch.ops.higher_order.wrap_with_autocast"


def without_inner_programs(module: fx.GraphModule) -> None:
    """Replace, in place, those that compute outside as they do inside; others are left."""
    for node in module.graph.find_nodes(op="call_function", target=lookup(_GRADIENTS)):
        _put_in_if_possible(module, node, 1)
    for node in module.graph.find_nodes(op="call_function", target=lookup(_AUTOCAST)):
        if node.args[2] is False:  # switched on, it casts while the program runs
            _put_in_if_possible(module, node, 4)


def _put_in_if_possible(module: fx.GraphModule, call: fx.Node, place: int) -> None:
    """`place` is that of the inner program among the arguments."""
    named = call.args[place]
    program = getattr(module, str(named.target), None) if isinstance(named, fx.Node) else None
    if isinstance(named, fx.Node) and isinstance(program, fx.GraphModule) and _can_be_put_in(call, program):
        _put_in(call, program.graph, call.args[place + 1 :])
        if not named.users:
            module.graph.erase_node(named)
            delattr(module, str(named.target))  # what is there is translated, whether or not it is called


def _can_be_put_in(call: fx.Node, program: fx.GraphModule) -> bool:
    """Whether it holds nothing of its own, and its results are computed, and taken one by one."""
    results: Any = program.graph.output_node().args[0]
    return (
        all(node.op in ("placeholder", "call_function", "output") for node in program.graph.nodes)
        and all(isinstance(one, fx.Node) for one in results)
        and all(user.target is operator.getitem for user in call.users)
    )


def _put_in(call: fx.Node, inner: fx.Graph, given: Any) -> None:
    with call.graph.inserting_before(call):
        known = dict(zip(inner.find_nodes(op="placeholder"), given, strict=True))
        results: Any = call.graph.graph_copy(inner, known)
    for user in list(call.users):
        user.replace_all_uses_with(results[user.args[1]])
        call.graph.erase_node(user)
    call.graph.erase_node(call)
