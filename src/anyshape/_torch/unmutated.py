"""Operators that write to a tensor, replaced by those that give a new one, where nothing else sees the tensor.

`x = conv(x); x += y` and an activation with `inplace=True` are most of the writes in models. What may share its memory
with another tensor is left to torch, which has to run the program for it.
"""

from __future__ import annotations

import torch
from torch import fx

_FRESH = frozenset(
    f"aten::{name}"
    for name in (
        "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input",
        "batch_norm", "group_norm", "instance_norm", "layer_norm", "linear", "matmul", "embedding",
    )
)  # fmt: skip
"""Operators made of others in torch that nevertheless always give a new tensor."""


def without_mutations(graph: fx.Graph) -> None:
    """Replace, in place, what writes to a tensor that only its own name reaches."""
    _leave_out_what_does_nothing(graph)
    order = {node: place for place, node in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        function = _functional(node)
        if function is None or not _is_alone(node, order):
            continue
        written = node.args[0]
        node.target = function
        assert isinstance(written, fx.Node)
        written.replace_all_uses_with(node, delete_user_cb=lambda user: order.get(user, -1) > order[node])  # noqa: B023


_DROPOUTS = frozenset(f"aten::{name}" for name in ("dropout", "feature_dropout", "alpha_dropout"))


def _leave_out_what_does_nothing(graph: fx.Graph) -> None:
    """A dropout gives the very same tensor outside of training, and torch takes it for a new one."""
    for node in list(graph.nodes):
        if isinstance(node.target, torch._ops.OpOverload) and node.target.name() in _DROPOUTS and not node.args[2]:
            assert isinstance(node.args[0], fx.Node)
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _functional(node: fx.Node) -> torch._ops.OpOverload | None:
    """The operator that gives what this one writes."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
        return None
    name = target._schema.name.removeprefix("aten::")
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    if not name.endswith("_") or packet is None:
        return None
    function = getattr(packet, target._overloadname, None)
    arguments = [argument.name for argument in target._schema.arguments]
    if function is None or [argument.name for argument in function._schema.arguments] != arguments:
        return None
    return function if _keeps_type(node) else None


def _keeps_type(node: fx.Node) -> bool:
    """Whether the written tensor has the type of all that is computed with; else a write casts, and the other not."""
    kinds = {value.dtype for argument in node.all_input_nodes if (value := _tensor(argument)) is not None}
    numbers = [argument for argument in node.args[1:] if isinstance(argument, (float, complex))]
    return len(kinds) == 1 and (not numbers or all(kind.is_floating_point or kind.is_complex for kind in kinds))


def _is_alone(node: fx.Node, order: dict[fx.Node, int]) -> bool:
    written = node.args[0]
    if not isinstance(written, fx.Node) or not _is_new(written) or written in node.args[1:]:
        return False
    return all(order.get(user, -1) > order[node] or user is node or _is_new(user) for user in written.users)


def _is_new(node: fx.Node) -> bool:
    """Whether a node gives a tensor that shares its memory with no other."""
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload) or _tensor(node) is None:
        return False
    if any(result.alias_info is not None for result in target._schema.returns):
        return False
    return target.name() in _FRESH or not _is_made_of_others(target)


def _is_made_of_others(target: torch._ops.OpOverload) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), "CompositeImplicitAutograd"))


def _tensor(node: fx.Node) -> torch.Tensor | None:
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) else None
