"""Writes to tensors, each made an operator that gives a new tensor; the rest of a program stays as it was traced.

torch would run the whole program again for the sake of one write. `x = conv(x); x += y`, an activation with
`inplace=True`, and `scores[:, 1:] = shifted` are most of the writes in models. What shares its memory with what is
written is known from the trace: its tensors without data share theirs just so. Whoever reads such a tensor behind a
write is given it anew, by the views that led to it.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from anyshape.torchkit.private_names import OpOverload, pytree
from anyshape.torchkit.schemas import writes

_aten = torch.ops.aten


class _NoSuchOperatorError(Exception):
    """A write that has no operator of its own, or goes where it cannot be followed."""


def without_writes(graph: fx.Graph) -> list[str] | None:
    """Replace, in place, all writes. The names of those to a tensor whose memory others share; None where one cannot be
    replaced, and the graph is of no use any more.
    """
    _leave_out_what_does_nothing(graph)
    if not any(writes(node.target) for node in graph.nodes):
        return []
    rewriting = _Rewriting(graph)
    try:
        for node in list(graph.nodes):
            rewriting.take(node)
    except _NoSuchOperatorError:
        return None
    rewriting.erase_unused()
    return rewriting.replaced


_DROPOUTS = frozenset(f"aten::{name}" for name in ("dropout", "feature_dropout", "alpha_dropout"))


def _leave_out_what_does_nothing(graph: fx.Graph) -> None:
    """A dropout gives the very same tensor outside of training, and torch takes it for a new one."""
    for node in list(graph.nodes):
        if isinstance(node.target, OpOverload) and node.target.name() in _DROPOUTS and not node.args[2]:
            assert isinstance(node.args[0], fx.Node)
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


# ---- what shares memory

SHARED = "anyshape.shared"
"""Where a copied node holds in which place its original was given the tensor whose memory it shares, or -1."""


def shared_place(node: fx.Node) -> int:
    """The place, among all nodes that a node is given, of the one whose memory its result shares; -1 without one."""
    if SHARED in node.meta:
        return int(node.meta[SHARED])
    mine = _memory_of(node)
    return next((place for place, one in enumerate(node.all_input_nodes) if mine & _memory_of(one)), -1)


def _memory_of(node: fx.Node) -> set[int]:
    """The memory of all results, by its address."""
    leaves = pytree.tree_leaves(node.meta.get("val"))
    tensors = [one for one in leaves if isinstance(one, torch.Tensor) and one.layout == torch.strided]
    return {one.untyped_storage()._cdata for one in tensors}


def _source_of(node: fx.Node) -> fx.Node | None:
    """The node whose memory a result shares; None for memory of its own."""
    place = shared_place(node) if node.op == "call_function" else -1
    source = node.all_input_nodes[place] if place >= 0 else None
    if source is not None and node.target is operator.getitem and _source_of(source) is None:
        return None  # one of several results of an operator that gives new ones
    return source


# ---- node by node


class _Rewriting:
    """A graph whose nodes are taken one after the other, in the order in which they ran."""

    def __init__(self, graph: fx.Graph) -> None:
        self.replaced: list[str] = []
        self._graph, self._end = graph, graph.output_node()
        self._made: list[fx.Node] = []
        """Beside the nodes of the trace."""
        self._sources: dict[fx.Node, fx.Node] = {}
        """By a node of the trace, the one whose memory it shares."""
        self._handed: dict[fx.Node, fx.Node] = {}
        """What stands for that one among the node's arguments now."""
        self._writes: set[fx.Node] = set()
        """Nodes that wrote in the trace: what they give is what they wrote to."""
        self._shared: set[fx.Node] = set()
        """Nodes whose memory others share."""
        self._now: dict[fx.Node, dict[fx.Node, fx.Node]] = {}
        """By a node whose memory was written to: what holds it since, and its views as far as they were asked for."""
        given = [memory for node in graph.find_nodes(op="placeholder") for memory in _memory_of(node)]
        self._given_twice = {memory for memory, count in Counter(given).items() if count > 1}

    def take(self, node: fx.Node) -> None:
        """A node reads what is there now; what it writes to is another tensor from here on."""
        if (view := _view_instead(node.target)) is not None:
            node.target = view
        if writes(node.target):
            self._replace_write(node)
            return
        if (source := _source_of(node)) is not None:
            self._sources[node] = self._handed[node] = source
            self._shared.add(self._owner(node))
        self._read_now(node)
        if source is not None and (views := self._now.get(self._owner(node))) is not None:
            views[node] = node

    def erase_unused(self) -> None:
        for node in reversed(self._made):
            if not node.users:
                self._graph.erase_node(node)

    def _owner(self, node: fx.Node) -> fx.Node:
        """The node that made the memory."""
        while node in self._sources:
            node = self._sources[node]
        return node

    def _read_now(self, node: fx.Node) -> None:
        if getattr(node.target, "__name__", "").startswith("sym_"):
            return  # a size, which no write changes
        for given in node.all_input_nodes:
            now = self._value(given, node)
            if now is not given:
                node.replace_input_with(given, now)
            if self._sources.get(node) is given:
                self._handed[node] = now

    def _value(self, node: fx.Node, reader: fx.Node) -> fx.Node:
        """What holds, where it is read, the tensor that a node of the trace stands for."""
        views = self._now.get(self._owner(node))
        if views is None:
            return node
        if node not in views:
            held = self._value(self._sources[node], reader)
            views[node] = held if node in self._writes else self._view_again(node, held, reader)
        return views[node]

    def _view_again(self, node: fx.Node, held: fx.Node, reader: fx.Node) -> fx.Node:
        if _name_of(node) in _BY_MEMORY:
            raise _NoSuchOperatorError
        with self._graph.inserting_before(reader):
            again = self._graph.node_copy(node, lambda given: held if given is self._handed[node] else given)
        self._made.append(again)
        return again

    def _replace_write(self, node: fx.Node) -> None:
        written, function = node.args[0] if node.args else None, _functional_twin(node)
        if function is None or not isinstance(written, fx.Node):
            raise _NoSuchOperatorError
        owner = self._owner(written)
        if owner.op == "get_attr" or _memory_of(owner) & self._given_twice:
            raise _NoSuchOperatorError
        if owner in self._shared:
            self.replaced.append(str(node.target))
        self._shared.add(owner)
        chain = [written]
        while chain[-1] in self._sources:
            chain.append(self._sources[chain[-1]])
        wholes = [self._value(one, node) for one in chain]
        self._read_now(node)
        self._end = node
        held = self._written_value(node, function, wholes[0])
        now = {written: held, node: held}
        for (view, source), whole in zip(itertools.pairwise(chain), wholes[1:], strict=True):
            if view not in self._writes:
                held = self._put_back(node, view, held, source, whole)
            now[source] = held
        self._now[owner] = now
        self._sources[node] = written
        self._writes.add(node)

    # ---- what is written, and where it goes

    def _written_value(self, node: fx.Node, function: OpOverload, before: fx.Node) -> fx.Node:
        """A node with what a part of memory holds after a write."""
        if function is not _aten.copy.default:
            node.target = function
            return node
        value = before.meta["val"]
        copied = node.args[1]
        assert isinstance(copied, fx.Node)
        if copied.meta["val"].dtype != value.dtype:
            meant = copied.meta["val"].to(value.dtype)
            copied = self._add(node, _aten.to.dtype, (copied, value.dtype), meant)
        if str(copied.meta["val"].shape) != str(value.shape):
            copied = self._add(node, _aten.expand.default, (copied, self._sizes(node, before)), value)
        self._made.append(node)  # nobody reads it any more
        return copied

    def _put_back(self, write: fx.Node, view: fx.Node, part: fx.Node, source: fx.Node, whole: fx.Node) -> fx.Node:
        """The whole with a part that was written; `source` is what the trace took the part of."""
        name, how = _name_of(view), view.args[1:]
        if view.kwargs:
            raise _NoSuchOperatorError
        if name in _SCATTERS:
            return self._add(write, _SCATTERS[name], (whole, part, *how), whole.meta["val"])
        if name in _TURNS:
            back, arguments = _TURNS[name](how)
            return self._add(write, back, (part, *arguments), whole.meta["val"])
        if name not in _IN_ORDER and name not in _WIDENED:
            raise _NoSuchOperatorError
        if str(view.meta["val"].shape) == str(source.meta["val"].shape):
            return part
        if name in _WIDENED:
            raise _NoSuchOperatorError
        return self._add(write, _aten.reshape.default, (part, self._sizes(write, whole)), whole.meta["val"])

    def _sizes(self, write: fx.Node, whole: fx.Node) -> list[Any]:
        """Of a tensor, as a program states them."""
        shape = whole.meta["val"].shape
        return [
            size if isinstance(size, int) else self._add(write, _aten.sym_size.int, (whole, axis), size)
            for axis, size in enumerate(shape)
        ]

    def _add(self, write: fx.Node, target: Any, args: tuple[Any, ...], value: Any) -> fx.Node:
        """A node behind a write and what was added for it, said to come from its line."""
        with self._graph.inserting_after(self._end):
            self._end = self._graph.call_function(target, args)
        self._end.meta = {**write.meta, "val": value}
        self._made.append(self._end)
        return self._end


# ---- views, by how a part goes back to where it was taken from

_SCATTERS = {
    "select.int": _aten.select_scatter.default, "slice.Tensor": _aten.slice_scatter.default,
    "diagonal": _aten.diagonal_scatter.default,
}  # fmt: skip
"""The operator that puts a part in, called as the view was."""


def _turned_back(how: Sequence[Any]) -> tuple[OpOverload, tuple[Any, ...]]:
    (order,) = how
    places = [axis % len(order) for axis in order]
    return _aten.permute.default, ([places.index(axis) for axis in range(len(order))],)


_TURNS: dict[str, Callable[[Sequence[Any]], tuple[OpOverload, tuple[Any, ...]]]] = {
    "transpose.int": lambda how: (_aten.transpose.int, tuple(how)),
    "swapaxes": lambda how: (_aten.transpose.int, tuple(how)),
    "t": lambda _: (_aten.t.default, ()),
    "permute": _turned_back,
}
"""The operator that turns axes back, and what it takes behind the part."""
_IN_ORDER = frozenset((
    "view", "_unsafe_view", "reshape", "flatten.using_ints", "unflatten.int", "squeeze", "squeeze.dim", "squeeze.dims",
    "unsqueeze", "view_as", "reshape_as", "contiguous", "to.dtype", "to.device", "to.dtype_layout", "to.other",
    "type_as", "alias", "detach", "lift_fresh",
))  # fmt: skip
"""What leaves all elements in their order, or does nothing: another shape undoes it."""
_WIDENED = frozenset(("expand", "expand_as", "broadcast_to"))
"""What repeats elements, all of which a write would have to reach: torch lets none be written to but those of one."""
_BY_MEMORY = frozenset(("as_strided", "view.dtype", "set", "set.source_Tensor", "resize", "resize_as"))
"""What reads memory as it lies there, which a new tensor lays out in another way."""


def _name_of(node: fx.Node) -> str:
    return node.target.name().removeprefix("aten::") if isinstance(node.target, OpOverload) else ""


# ---- writes, and the operators that give what they write

_PLACES = frozenset(("index", "indices", "mask", "condition"))
"""Arguments that only say where to write."""


def _functional_twin(node: fx.Node) -> OpOverload | None:
    """The operator that gives what this one writes; None where there is none, or where it gives another type."""
    target = node.target
    function = _named_alike(target) if isinstance(target, OpOverload) else None
    if function is None or not isinstance(target, OpOverload) or torch.Tag.inplace_view in target.tags:
        return None
    return function if function is _aten.copy.default or _keeps_type(node, target) else None


def _view_instead(target: Any) -> OpOverload | None:
    """The view that a tensor becomes by `y.transpose_(1, 2)`: nothing is written to its memory."""
    is_turned = isinstance(target, OpOverload) and torch.Tag.inplace_view in target.tags
    view = _named_alike(target) if is_turned else None
    return None if view is None or writes(view) or view.name().removeprefix("aten::") in _BY_MEMORY else view


def _named_alike(target: OpOverload) -> OpOverload | None:
    """The operator of the same name without the underscore that takes the same; `transpose_` has `transpose.int`."""
    name, _, overload = target.name().removeprefix("aten::").partition(".")
    packet = getattr(_aten, name.removesuffix("_"), None) if name.endswith("_") else None
    if packet is None:
        return None
    overloads = sorted(packet.overloads(), key=lambda one: one != (overload or "default"))
    alike = (getattr(packet, one) for one in overloads)
    return next((one for one in alike if _arguments(one) == _arguments(target)), None)


def _arguments(operator: OpOverload) -> list[tuple[str, str]]:
    return [(argument.name, str(argument.type)) for argument in operator._schema.arguments]


def _keeps_type(node: fx.Node, target: OpOverload) -> bool:
    """Whether the written tensor has the type of all that is computed with; else a write casts, and the other not."""
    given = [*zip((name for name, _ in _arguments(target)), node.args, strict=False), *node.kwargs.items()]
    used = pytree.tree_leaves([value for name, value in given if name not in _PLACES])
    tensors = [one.meta.get("val") for one in used if isinstance(one, fx.Node)]
    kinds = {value.dtype for value in tensors if isinstance(value, torch.Tensor)}
    numbers = [one for one in used if isinstance(one, (float, complex))]
    return len(kinds) == 1 and (not numbers or all(kind.is_floating_point or kind.is_complex for kind in kinds))
