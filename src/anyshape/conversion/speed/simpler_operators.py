"""Operators of a program that torch's translation does not take, each replaced by itself; the rest stays as it was
traced. torch would run the whole program again for the sake of one of them.

An operator that writes to a tensor becomes one that gives a new tensor, where nothing else sees the old one. `x =
conv(x); x += y` and an activation with `inplace=True` are most of the writes in models. What may share its memory with
another tensor is left to torch, which has to run the program for it.

An operator without a translation is traced by itself, on what its node is given, and its nodes take the place of the
one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from anyshape.source.live_code import LOCK
from anyshape.torchkit.private_names import OpOverload, lookup
from anyshape.torchkit.schemas import gives_alias, writes

_FRESH = frozenset(
    f"aten::{name}"
    for name in (
        "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input",
        "batch_norm", "group_norm", "instance_norm", "layer_norm", "linear", "matmul", "embedding",
    )
)  # fmt: skip
"""Operators made of others in torch that nevertheless always give a new tensor."""


def without_mutations(graph: fx.Graph, *, parts: bool) -> list[str]:
    """Replace, in place, what writes to a tensor that only its own name reaches; with `parts`, to a part of one, too.

    The names of the operators that wrote to parts are given back.
    """
    _leave_out_what_does_nothing(graph)
    order = {node: place for place, node in enumerate(graph.nodes)}
    replaced = []
    for node in list(graph.nodes):
        function, written = _functional_twin(node), node.args[0] if node.args else None
        if function is None or not isinstance(written, fx.Node):
            continue
        name = str(node.target)
        if _is_alone(written, node, order):
            node.target = function
            _use_from_here(written, node, order)
        elif parts and (whole := _write_part(node, function, written, order)) is not None:
            replaced.append(name)
            _use_from_here(*whole, order)
    return replaced


def _use_from_here(old: fx.Node, new: fx.Node, order: dict[fx.Node, int]) -> None:
    old.replace_all_uses_with(new, delete_user_cb=lambda user: order.get(user, -1) > order[new])


def _write_part(
    node: fx.Node, function: OpOverload, written: fx.Node, order: dict[fx.Node, int]
) -> tuple[fx.Node, fx.Node] | None:
    """The tensor to a part of which a node writes, and the node that takes its place; None where others may see it."""
    found = _views_to(written, node)
    if found is None or _is_seen_later(node) or not _fills_the_part(node):
        return None
    whole, views = found
    if not _is_alone(whole, node, order, views):
        return None
    nodes = _write_anew(node, function, views)
    order.update(dict.fromkeys(nodes, order[node]))
    return whole, nodes[-1]


_DROPOUTS = frozenset(f"aten::{name}" for name in ("dropout", "feature_dropout", "alpha_dropout"))


def _leave_out_what_does_nothing(graph: fx.Graph) -> None:
    """A dropout gives the very same tensor outside of training, and torch takes it for a new one."""
    for node in list(graph.nodes):
        if isinstance(node.target, OpOverload) and node.target.name() in _DROPOUTS and not node.args[2]:
            assert isinstance(node.args[0], fx.Node)
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _functional_twin(node: fx.Node) -> OpOverload | None:
    """The operator that gives what this one writes."""
    target = node.target
    if not isinstance(target, OpOverload) or not writes(target):
        return None
    name, _, overload = target.name().removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    function = getattr(packet, overload or "default", None)
    if not name.endswith("_") or function is None or _argument_names(function) != _argument_names(target):
        return None
    return function if _keeps_type(node) else None


def _argument_names(operator: OpOverload) -> list[str]:
    return [argument.name for argument in operator._schema.arguments]


def _keeps_type(node: fx.Node) -> bool:
    """Whether the written tensor has the type of all that is computed with; else a write casts, and the other not."""
    used = [argument for argument in node.all_input_nodes if not _is_mask(node, argument)]
    kinds = {value.dtype for argument in used if (value := _tensor_of(argument)) is not None}
    numbers = [argument for argument in node.args[1:] if isinstance(argument, (float, complex))]
    return len(kinds) == 1 and (not numbers or all(kind.is_floating_point or kind.is_complex for kind in kinds))


def _is_mask(node: fx.Node, argument: fx.Node) -> bool:
    """Which only says where to write."""
    is_filled = isinstance(node.target, OpOverload) and node.target.name().startswith("aten::masked_fill_.")
    return is_filled and argument is node.args[1] and argument is not node.args[0]


def _is_alone(written: fx.Node, node: fx.Node, order: dict[fx.Node, int], views: Sequence[fx.Node] = ()) -> bool:
    """Whether nothing but these views, and operators that give new tensors, has seen a tensor before a write to it."""
    if not _is_new(written) or written in node.args[1:]:
        return False
    known = (node, *views)
    return all(order.get(user, -1) > order[node] or user in known or _is_new(user) for user in written.users)


def _is_new(node: fx.Node) -> bool:
    """Whether a node gives a tensor that shares its memory with no other that is still used."""
    target = node.target
    if node.op != "call_function" or not isinstance(target, OpOverload) or _tensor_of(node) is None:
        return False
    if gives_alias(target):
        whole = node.args[0] if node.args else None
        return isinstance(whole, fx.Node) and list(whole.users) == [node] and _is_new(whole)
    has_kernel = lookup("torch._C._dispatch_has_kernel_for_dispatch_key")
    is_made_of_others = has_kernel is None or has_kernel(target.name(), "CompositeImplicitAutograd")
    return target.name() in _FRESH or not is_made_of_others


def _tensor_of(node: fx.Node) -> torch.Tensor | None:
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) else None


# ---- writes to a part of a tensor

_aten = torch.ops.aten


def _put_back(view: fx.Node, part: fx.Node) -> tuple[OpOverload, tuple[Any, ...]]:
    """The operator that undoes a view, and what it is called with."""
    whole, *how = view.args
    if view.target is _aten.transpose.int:
        return _aten.transpose.int, (part, *how)
    scatter = _aten.select_scatter.default if view.target is _aten.select.int else _aten.slice_scatter.default
    return scatter, (whole, part, *how)


_VIEWS = (_aten.select.int, _aten.slice.Tensor, _aten.transpose.int)


def _views_to(written: fx.Node, write: fx.Node) -> tuple[fx.Node, list[fx.Node]] | None:
    """The tensor of which a write changes a part, and the views that lead there; None where others see one of them."""
    views: list[fx.Node] = []
    node, user = written, write
    while node.op == "call_function" and node.target in _VIEWS:
        if list(node.users) != [user] or node.kwargs or not isinstance(node.args[0], fx.Node):
            return None
        views.append(node)
        node, user = node.args[0], node
    return (node, views) if views else None


def _write_anew(write: fx.Node, function: OpOverload, views: list[fx.Node]) -> list[fx.Node]:
    """Replace a write, in place, by an operator that gives the part, and by those that put it into the whole; the last
    of these nodes is the whole tensor.
    """
    write.target = function
    nodes = [write]
    for view in views:
        scatter, args = _put_back(view, nodes[-1])
        with write.graph.inserting_after(nodes[-1]):
            nodes.append(write.graph.call_function(scatter, args))
        whole = view.args[0]
        assert isinstance(whole, fx.Node)
        nodes[-1].meta = {**write.meta, "val": whole.meta["val"]}
    return nodes


def _is_seen_later(write: fx.Node) -> bool:
    """Whether the part that a write gives back is used, other than by `y[0] += 1`, which copies it to where it is."""
    following = write.next
    while following.op != "output" and not writes(following.target):
        following = following.next
    return any(user is not following or user.target is not _aten.copy_.default for user in write.users)


def _fills_the_part(write: fx.Node) -> bool:
    """Whether what is copied has the very shape of the part: translations of a copy do not spread it."""
    if write.target is not _aten.copy_.default:
        return True
    part, copied = (_tensor_of(one) if isinstance(one, fx.Node) else None for one in (*write.args, None)[:2])
    return part is not None and copied is not None and str(part.shape) == str(copied.shape)


# ---- operators without a translation, replaced by what they are made of


def inline(graph: fx.Graph, nodes: Collection[fx.Node], table: Mapping[Any, Any]) -> bool:
    """Replace these nodes, in place; False where one of them cannot be, and the graph is of no use any more.

    `table` says what operators are made of.
    """
    try:
        return all(_replaces_node(graph, node, table) for node in nodes)
    except Exception:  # noqa: BLE001  torch takes the whole program apart instead
        return False


_READ = lookup("torch.ops.aten._local_scalar_dense")
_OTHER_NAMES: Mapping[Any, Any] = {} if _READ is None else {_aten.item.default: _READ.default}
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
