"""A part of a model that is like one before it is not traced again: the nodes of the first are copied.

Deep models repeat a block with other weights. Each operator of a trace costs a millisecond or two; a copy of its node,
a hundredth of that. Parts are alike if their classes, their attributes, the shapes of their weights and what they are
called with are the same, but for numbers that the first has not read. A part is copied only if its nodes depend on
nothing but that. Code may still decide by something that nobody sees; the file is checked like any other, and traced in
full where it is wrong.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from anyshape.conversion.speed import are_on
from anyshape.conversion.speed.functional_writes import SHARED, shared_place
from anyshape.sizes import budgets
from anyshape.torchkit.capture import expression_of
from anyshape.torchkit.patches import configured, patched, replaced
from anyshape.torchkit.private_names import OpOverload, attribute, lookup, missing, pytree
from anyshape.torchkit.schemas import gives_alias, writes


@contextlib.contextmanager
def repeated_parts(*, wanted: bool) -> Iterator[list[str]]:
    """Inside, torch.export copies the nodes of parts that are alike; the names of their classes are collected.

    A torch that has moved what this needs traces in full.
    """
    copied: list[str] = []
    if not wanted or not are_on() or missing(_NEEDED):
        yield copied
        return
    reads = Reads()

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        parts = _Parts(original, copied, reads)
        # a bound method would not be given the tracer
        return lambda tracer, *call: parts.call(tracer, *call)  # noqa: PLW0108

    # torch's memory of results rests: where parts are copied it is hardly asked, and a look into it costs as much as
    # an operator, and assumptions about sizes
    with (
        replaced(_CALL, make),
        reads.watched(),
        configured("torch._dynamo.config.fake_tensor_cache_enabled", value=False),
    ):
        yield copied


_PROXIES = "torch.fx.experimental.proxy_tensor"
_CALL = f"{_PROXIES}._ModuleStackTracer.call_module"
_SLOT, _TRACK = f"{_PROXIES}.get_proxy_slot", f"{_PROXIES}.track_tensor_tree"
_UNTRACED = f"{_PROXIES}.disable_proxy_modes_tracing"
_NEEDED = (_CALL, _SLOT, _TRACK, _UNTRACED)
_BY_PROXY = f"{_PROXIES}._ModuleStackTracer.enable_attr_proxy"


@dataclass(frozen=True)
class _TracedCall:
    """The nodes of one part's call, between what went in and what came out."""

    nodes: tuple[fx.Node, ...]
    inputs: tuple[fx.Node, ...]
    results: tuple[Any, ...]
    """A node for each tensor; whatever else was returned, as it is."""
    tensors: tuple[torch.Tensor | None, ...]
    structure: pytree.TreeSpec
    path: str | None
    """Where the part stands in the model; None for one that is registered nowhere."""


class _Parts:
    """The parts that were traced, by what they are and what they were called with."""

    def __init__(self, original: Callable[..., Any], copied: list[str], reads: Reads) -> None:
        self._original, self._copied, self._reads = original, copied, reads
        self._looks = Looks()
        self._traced: dict[Hashable, list[tuple[Mapping[Place, int], _TracedCall | None]]] = {}
        """With the numbers that were read meanwhile; None where a copy would not be the same."""

    def call(self, tracer: Any, part: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        trace = lambda: self._original(tracer, part, forward, args, kwargs)  # noqa: E731
        if attribute(tracer, _BY_PROXY, otherwise=True):
            return trace()  # a part that stands at two places of the model is called through a proxy
        given = [*pytree.tree_leaves((args, kwargs)), *part.parameters(), *part.buffers()]
        inputs = _nodes_of_tensors(given, tracer)
        look, key = self._looks.of(part), self._key(tracer, part, (args, kwargs), inputs)
        if look is None or key is None or inputs is None:
            return trace()
        for read, traced in self._traced.get(key, ()):
            if any(look.numbers[place] != number for place, number in read.items()):
                continue
            if traced is None:
                return trace()
            self._copied.append(type(part).__name__)
            self._reads.again(part, read)
            return _copied_call(traced, inputs, tracer, _path_of(part, tracer))
        last = next(iter(reversed(tracer.graph.nodes)))
        with self._reads.during(part, look) as read:
            result = trace()
        key = self._key(tracer, part, (args, kwargs), inputs)  # two sizes may have turned out to be one meanwhile
        self._traced.setdefault(key, []).append((read, _copyable_call(tracer, last, inputs, result, part)))
        return result

    def _key(self, tracer: Any, part: nn.Module, given: Any, inputs: Sequence[fx.Node] | None) -> Hashable | None:
        """What is the same for calls of parts that are alike, but for numbers."""
        look, call = self._looks.of(part), _look_of_call(given)
        if look is None or call is None or inputs is None:
            return None
        return id(tracer), torch.is_grad_enabled(), look.kind, call, _which_are_same(inputs)


def _look_of_call(call: Any) -> Hashable | None:
    leaves, structure = pytree.tree_flatten(call)
    if not all(isinstance(leaf, (torch.Tensor, torch.SymInt, *PLAIN)) for leaf in leaves):
        return None  # a cache may keep what it is given
    return str(structure), *map(look_of, leaves)


def _nodes_of_tensors(leaves: Sequence[Any], tracer: Any) -> tuple[fx.Node, ...] | None:
    """The nodes of all tensors; None where one of them is unknown to the trace."""
    nodes = tuple(_node_of(leaf, tracer) for leaf in leaves if isinstance(leaf, torch.Tensor))
    return None if None in nodes else nodes


def _node_of(tensor: torch.Tensor, tracer: Any) -> Any:
    return lookup(_SLOT)(tensor, tracer, None, lambda tracked: tracked.proxy.node)


def _which_are_same(nodes: Sequence[fx.Node]) -> Hashable:
    """Which of them are the same."""
    first: dict[fx.Node, int] = {}
    return tuple(first.setdefault(node, place) for place, node in enumerate(nodes))


# ---- recording


def _copyable_call(
    tracer: Any, before: fx.Node, inputs: tuple[fx.Node, ...], result: Any, part: nn.Module
) -> _TracedCall | None:
    """What a call left in the graph; None where a copy would not be the same."""
    nodes: list[fx.Node] = []
    node = before.next
    while node.op != "root":
        if not _is_size(node):  # one symbol has one value: what the first part made of it serves all
            nodes.append(node)
        node = node.next
    leaves, structure = pytree.tree_flatten(result)
    tensors = tuple(leaf if isinstance(leaf, torch.Tensor) else None for leaf in leaves)
    results = [_node_of(leaf, tracer) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    made = set(nodes)
    inside = {*made, *inputs}
    if len(nodes) < budgets.FEWEST_NODES_TO_COPY or not all(_may_be_copied(one, inside, made) for one in nodes):
        return None
    if not all(isinstance(one, (*PLAIN, torch.SymInt)) or one in inside for one in results):
        return None
    return _TracedCall(tuple(nodes), inputs, tuple(results), tensors, structure, _path_of(part, tracer))


def _may_be_copied(node: fx.Node, inside: set[fx.Node], made: set[fx.Node]) -> bool:
    """An operator on what the part was given or made, on sizes and on constants, that writes to nothing else."""
    if node.op == "get_attr":
        return True
    is_plain = node.op == "call_function" and "unbacked_bindings" not in node.meta
    if not is_plain or not (isinstance(node.target, OpOverload) or node.target is operator.getitem):
        return False
    if writes(node.target) and not _writes_to_its_own(node, made):
        return False
    return all(one in inside or _is_size(one) for one in node.all_input_nodes)


_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


def _is_size(node: fx.Node) -> bool:
    return "unbacked_bindings" not in node.meta and isinstance(node.meta.get("val"), _NUMBERS)


def _writes_to_its_own(node: fx.Node, made: set[fx.Node]) -> bool:
    """Whether what it writes to is neither given from outside nor a view of that."""
    written = node.args[0] if node.args else None
    while isinstance(written, fx.Node) and written in made:
        if not gives_alias(written.target) and written.target is not operator.getitem:
            return True
        written = written.args[0]
    return False


# ---- copying


def _copied_call(known: _TracedCall, inputs: tuple[fx.Node, ...], tracer: Any, path: str | None) -> Any:
    """The same nodes on other inputs; what comes out is tracked like any tensor of the trace."""
    instead = dict(zip(known.inputs, inputs, strict=True))
    for node in known.nodes:
        copy = instead[node] = tracer.graph.node_copy(node, lambda one: instead.get(one, one))
        copy.meta.setdefault(SHARED, shared_place(node))  # its tensors are those of the first part
        if _STACK in node.meta and path is not None and known.path is not None:
            copy.meta[_STACK] = _outer_modules(tracer) | _moved_modules(node.meta[_STACK], known.path, path)
    results = [
        value if tensor is None else _tracked_tensor(tensor, instead[value], tracer)
        for value, tensor in zip(known.results, known.tensors, strict=True)
    ]
    return pytree.tree_unflatten(results, known.structure)


_STACK = "nn_module_stack"


def _path_of(part: nn.Module, tracer: Any) -> str | None:
    try:
        return str(tracer.path_of_module(part))
    except NameError:  # torch's word for what is no submodule
        return None


def _outer_modules(tracer: Any) -> dict[str, tuple[str, Any]]:
    """The modules around what is traced now, with their classes by name, as nodes have them."""
    found = tracer.module_stack.items()
    return {key: (name, f"{kind.__module__}.{kind.__qualname__}") for key, (name, kind) in found}


def _moved_modules(stack: Mapping[str, tuple[str, Any]], old: str, new: str) -> dict[str, tuple[str, Any]]:
    """The modules of a part's node, from the part inwards, under the names that they have in another part."""
    inner = ((key, module) for key, module in stack.items() if f"{module[0]}.".startswith(f"{old}."))
    return {f"{new}{key.removeprefix(old)}": (f"{new}{name[len(old) :]}", kind) for key, (name, kind) in inner}


def _tracked_tensor(like: torch.Tensor, node: fx.Node, tracer: Any) -> torch.Tensor:
    with lookup(_UNTRACED)():
        tensor = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)
    node.meta["val"] = tensor
    lookup(_TRACK)(tensor, fx.Proxy(node, tracer), constant=None, tracer=tracer)
    return tensor


# ---- what a part looks like

PLAIN = (type(None), bool, int, float, str, bytes, torch.dtype, torch.device, torch.memory_format, torch.layout)
Place = tuple[str, str]
"""The path of a module inside the part, and the name of an attribute."""


@dataclass(frozen=True)
class Look:
    """A part's class, attributes, children and the shapes of its weights; whole numbers among the attributes apart."""

    kind: Hashable
    numbers: Mapping[Place, int]


class Looks:
    """The looks of parts, each taken once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[nn.Module, Look | None]] = {}

    def of(self, part: nn.Module) -> Look | None:
        """None for a part with hooks, which may do anything."""
        if id(part) not in self._known:
            self._known[id(part)] = (part, self._look_at(part))  # held, so that the number is not given to another
        return self._known[id(part)][1]

    def _look_at(self, part: nn.Module) -> Look | None:
        if part._forward_hooks or part._forward_pre_hooks:
            return None
        attributes = {name: value for name, value in vars(part).items() if not isinstance(value, nn.Module)}
        for name in ("_parameters", "_buffers", "_modules"):
            attributes.pop(name, None)
        numbers: dict[Place, int] = {}
        if not _hides_reads(type(part)):
            own = [name for name, value in attributes.items() if type(value) is int]
            numbers = {("", name): attributes.pop(name) for name in own}
        children = []
        for name, child in part._modules.items():
            look = None if child is None else self.of(child)
            if look is None and child is not None:
                return None
            if look is not None:
                children.append((name, look.kind))
                numbers |= {
                    (f"{name}.{path}".removesuffix("."), at): value for (path, at), value in look.numbers.items()
                }
        weights = [(name, look_of(value)) for name, value in (*part._parameters.items(), *part._buffers.items())]
        names = tuple(numbers)
        return Look((type(part), look_of(attributes), names, tuple(children), tuple(weights)), numbers)


def _hides_reads(kind: type) -> bool:
    """Whether a class answers questions for its attributes itself."""
    return any("__getattribute__" in vars(base) for base in kind.__mro__ if base not in (nn.Module, object))


def look_of(value: Any) -> Hashable:
    """What a value is to code that looks at it; of an object that is not plain, that it is this very object."""
    look: Hashable = id(value)
    if isinstance(value, torch.Tensor):
        sizes = tuple(map(expression_of, (*value.shape, *value.stride())))
        look = sizes, value.dtype, value.device, value.requires_grad
    elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        look = expression_of(value)
    elif isinstance(value, PLAIN):
        look = value
    elif type(value) in (tuple, list):
        look = tuple(map(look_of, value))
    elif type(value) in (dict, OrderedDict):
        look = tuple((look_of(key), look_of(one)) for key, one in value.items())
    elif value == set():  # names of buffers that are not saved
        look = ()
    return type(value), look


# ---- which numbers are read

_ALL = "__dict__"


class Reads:
    """The numbers that code has read since a moment, by the module that holds them."""

    def __init__(self) -> None:
        self._read: set[tuple[int, str]] = set()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Inside, reads of modules' attributes are noted."""
        read = object.__getattribute__
        not_the_models = (sys.modules[nn.Module.__module__].__file__, __file__)

        def noted(module: nn.Module, name: str) -> Any:
            value = read(module, name)
            if type(value) is int or (name == _ALL and sys._getframe(1).f_code.co_filename not in not_the_models):
                self._read.add((id(module), name))
            return value

        with patched(nn.Module, "__getattribute__", noted):
            yield

    @contextlib.contextmanager
    def during(self, part: nn.Module, look: Look) -> Iterator[dict[Place, int]]:
        """Fills, at its end, with the numbers of a part that were read inside."""
        outer, self._read = self._read, set()
        found: dict[Place, int] = {}
        try:
            yield found
        finally:
            inner, self._read = self._read, outer | self._read
            holders = dict(part.named_modules(remove_duplicate=False))
            reads = {place: {(id(holders[place[0]]), name) for name in (place[1], _ALL)} for place in look.numbers}
            found |= {place: number for place, number in look.numbers.items() if inner & reads[place]}

    def again(self, part: nn.Module, places: Mapping[Place, int]) -> None:
        """The same numbers of another part count as read: it was not run, since it would have read them."""
        self._read |= {(id(part.get_submodule(path)), name) for path, name in places}
