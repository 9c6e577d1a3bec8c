"""Writes into a part of a tensor, `x[:, 0] = y`, replaced by operators that give a new tensor with that part put in.

torch would run the whole program again for them. Where only the tensor's own name reaches it, and the part is cut out
by `select`, `slice` and `transpose` for this write alone, each of them has an operator that puts the part back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

_aten = torch.ops.aten

_Scatter = tuple[torch._ops.OpOverload, tuple[Any, ...]]


def _put_back(view: fx.Node, part: fx.Node) -> _Scatter:
    """The operator that undoes a view, and what it is called with."""
    whole, *how = view.args
    if view.target is _aten.transpose.int:
        return _aten.transpose.int, (part, *how)
    scatter = _aten.select_scatter.default if view.target is _aten.select.int else _aten.slice_scatter.default
    return scatter, (whole, part, *how)


_VIEWS = (_aten.select.int, _aten.slice.Tensor, _aten.transpose.int)


def views_to(written: fx.Node, write: fx.Node) -> tuple[fx.Node, list[fx.Node]] | None:
    """The tensor of which a write changes a part, and the views that lead there; None where others see one of them."""
    views: list[fx.Node] = []
    node, user = written, write
    while node.op == "call_function" and node.target in _VIEWS:
        if list(node.users) != [user] or node.kwargs or not isinstance(node.args[0], fx.Node):
            return None
        views.append(node)
        node, user = node.args[0], node
    return (node, views) if views else None


def write_anew(write: fx.Node, function: torch._ops.OpOverload, views: list[fx.Node]) -> list[fx.Node]:
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


def is_seen_later(write: fx.Node) -> bool:
    """Whether the part that a write gives back is used, other than by `y[0] += 1`, which copies it to where it is."""
    following = write.next
    while following.op != "output" and not _is_write(following):
        following = following.next
    return any(user is not following or user.target is not _aten.copy_.default for user in write.users)


def _is_write(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def fills_the_part(write: fx.Node, tensor: Callable[[fx.Node], torch.Tensor | None]) -> bool:
    """Whether what is copied has the very shape of the part: translations of a copy do not spread it."""
    if write.target is not _aten.copy_.default:
        return True
    shapes = [
        str(value.shape) for one in write.args[:2] if isinstance(one, fx.Node) and (value := tensor(one)) is not None
    ]
    return len(shapes) == 2 and shapes[0] == shapes[1]
