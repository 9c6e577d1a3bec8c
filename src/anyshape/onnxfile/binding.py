"""From a call as the module took it to the file's inputs, and from the file's outputs to what the module returned.

An input may be a numpy array, a tensor of torch or of others, or a number. Nothing is cast, and nothing copied but what
lies on another device. torch is not imported: who gives a tensor has it.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from anyshape.errors import DeclarationError
from anyshape.onnxfile.contract import Branch, Contract, Fixed, Node, Parameter, Slot, slots
from anyshape.onnxfile.interface import Interface
from anyshape.sizes.notation import did_you_mean

Feeds = dict[str, Any]
_Take = Callable[[Any, Feeds], None]
_Make = Callable[[Sequence[Any]], Any]
Array = np.ndarray[Any, Any]


def parameters_of(interface: Interface, contract: Contract | None) -> Sequence[Parameter]:
    """The module's own, where the contract has them for these inputs; else the file's inputs in their order."""
    names = {port.name for port in interface.inputs}
    if contract is not None and contract.call is not None:
        told = [name for parameter in contract.call for name in slots(parameter.node)]
        if names <= set(told) and len(told) == len(set(told)):
            return contract.call
    return [Parameter(port.name, "both", Slot(port.name)) for port in interface.inputs]


def result_of(interface: Interface, contract: Contract | None) -> Node:
    """The module's own, where the contract has it for these outputs; else a dict by the file's names."""
    names = tuple(port.name for port in interface.outputs)
    if contract is not None and contract.returns is not None and set(slots(contract.returns)) <= set(names):
        return contract.returns
    return Branch("dict", names, tuple(map(Slot, names)))


def refuse_other_names(feeds: Mapping[str, Any], names: Sequence[str], optional: Container[str] = ()) -> None:
    """By name, all inputs of the file are given but those that are optional, and nothing else."""
    listed = ", ".join(f"`{name}`" for name in names)
    for name in names:
        if name not in feeds and name not in optional:
            raise DeclarationError(f"`{name}` is missing: the file takes {listed}")
    for name in feeds:
        if name not in names:
            raise DeclarationError(f"`{name}` is unknown: the file takes {listed}{did_you_mean(name, names)}")


# ---- taking a call apart


class Binder:
    """The module's parameters, ready to take calls."""

    def __init__(self, parameters: Sequence[Parameter], optional: Container[str] = ()) -> None:
        self._positional = tuple(p.name for p in parameters if p.way in ("both", "positional"))
        self._named = frozenset(p.name for p in parameters if p.way in ("both", "keyword"))
        self._many = next((p.name for p in parameters if p.way == "many"), None)
        self._takes = tuple(
            (p.name, _needs_something(p.node) and p.name not in optional, _taker(p.name, p.node)) for p in parameters
        )
        is_plain = all(p.way == "both" and p.node == Slot(p.name) for p in parameters)
        self._plain = self._positional if is_plain else None

    def __call__(self, args: Sequence[Any], kwargs: Feeds) -> Feeds:
        """The file's inputs by name, as they were given."""
        if self._plain is not None:  # most modules: each argument is an input, all by place or all by name
            if not kwargs and len(args) == len(self._plain):
                return dict(zip(self._plain, args))  # noqa: B905  of one length; the argument costs time
            if not args and kwargs.keys() == self._named:
                return kwargs
        given = dict(zip(self._positional, args, strict=False))
        if len(args) > len(given):
            self._take_surplus(args, given)
        for name, value in kwargs.items():
            if name in given or name not in self._named:
                raise DeclarationError(self._sentence_about(name, given))
            given[name] = value
        feeds: Feeds = {}
        for name, is_needed, take in self._takes:
            if name in given:
                take(given[name], feeds)
            elif is_needed:
                raise DeclarationError(f"`{name}` is missing: the file takes {self._needed_names}")
        return feeds

    def _take_surplus(self, args: Sequence[Any], given: Feeds) -> None:
        if self._many is None:
            raise DeclarationError(f"{len(args)} arguments are given: the file takes {self._needed_names}")
        given[self._many] = args[len(given) :]

    def _sentence_about(self, name: str, given: Feeds) -> str:
        if name in given:
            return f"`{name}` is given twice: by its place and by its name"
        known = [one for one, _, _ in self._takes]
        return f"`{name}` is unknown: the file takes {self._needed_names}{did_you_mean(name, known)}"

    @property
    def _needed_names(self) -> str:
        return ", ".join(f"`{name}`" for name, is_needed, _ in self._takes if is_needed) or "nothing"


def _needs_something(node: Node) -> bool:
    return next(slots(node), None) is not None


def _taker(where: str, node: Node) -> _Take:
    """What puts the inputs below a value into feeds."""
    if isinstance(node, Slot):
        return _slot_taker(where, node.name)
    if isinstance(node, Fixed):
        return lambda value, _: _refuse_other_constant(where, value, node.value)
    if node.kind in ("list", "tuple", "cache"):
        return _sequence_taker(where, node)
    return _keyed_taker(where, node)


def _slot_taker(where: str, name: str) -> _Take:
    def take(value: Any, feeds: Feeds) -> None:
        if value is None:
            raise DeclarationError(_none_given(where))
        feeds[name] = value

    return take


def _none_given(where: str) -> str:
    return f"`{where}` is None, but was an input when the file was made"


def _refuse_other_constant(where: str, value: Any, wanted: object) -> None:
    """A value that became part of the file; what the file knows nothing of (a device, a dtype) may be anything."""
    if wanted is None:
        if isinstance(value, (bool, int, float, list, tuple, Mapping)) or hasattr(value, "shape"):
            raise DeclarationError(f"`{where}` is given, but was None when the file was made: there is no input for it")
    elif not isinstance(value, (bool, int, float, str)) or value != wanted:
        shown = repr(value) if isinstance(value, (bool, int, float, str)) else f"of type `{type(value).__name__}`"
        raise DeclarationError(f"`{where}` is {shown}, but {wanted!r} is part of the file")


def _sequence_taker(where: str, node: Branch) -> _Take:
    takes = [_taker(f"{where}.{index}", part) for index, part in enumerate(node.parts)]

    def take(value: Any, feeds: Feeds) -> None:
        parts = _layers(value) if node.kind == "cache" else value
        if not isinstance(parts, (list, tuple)):
            raise DeclarationError(f"`{where}` takes a {node.kind}, not `{type(value).__name__}`")
        if len(parts) != len(takes):
            raise DeclarationError(f"`{where}` takes {len(takes)} parts, not {len(parts)}")
        for part, inner in zip(parts, takes, strict=True):
            inner(part, feeds)

    return take


def _layers(cache: Any) -> Any:
    """Keys and values, layer by layer: of a transformers cache, or as they are."""
    layers = getattr(cache, "layers", None)
    if layers is None:
        return cache
    names = ("keys", "values", "cumulative_length")
    rows = ([getattr(layer, name, None) for name in names] for layer in layers)
    return [row if hasattr(row[2], "shape") else row[:2] for row in rows]


def _keyed_taker(where: str, node: Branch) -> _Take:
    takes = {key: _taker(f"{where}.{key}", part) for key, part in zip(node.keys, node.parts, strict=True)}
    needed = [key for key, part in zip(node.keys, node.parts, strict=True) if _needs_something(part)]
    kind, listed = node.name or "dict", ", ".join(f"`{key}`" for key in needed)

    def take(value: Any, feeds: Feeds) -> None:
        given = _entries(value, node)
        if given is None:
            raise DeclarationError(f"`{where}` takes a {kind} of {listed}, not `{type(value).__name__}`")
        for key, part in given.items():
            if key in takes:
                takes[key](part, feeds)
            elif part is not None:
                hint = did_you_mean(str(key), map(str, takes))
                raise DeclarationError(f"`{where}` takes {listed}, but has `{key}`{hint}")
        for key in needed:
            if key not in given:
                raise DeclarationError(f"`{where}` lacks `{key}`: it takes {listed}")

    return take


def _entries(value: Any, node: Branch) -> Mapping[Any, Any] | None:
    """The parts of a dict, of a tuple in the place of a named one, or of an object's fields."""
    if isinstance(value, Mapping):
        return value
    if node.kind == "namedtuple" and isinstance(value, tuple):
        return dict(zip(node.keys, value, strict=False))
    if node.kind == "fields" and not hasattr(value, "shape"):
        return {key: getattr(value, str(key)) for key in node.keys if hasattr(value, str(key))}
    return None


# ---- putting a result together


class Fields(dict[str, Any]):
    """A result with names, by key or by attribute: in the place of a class that the reader of a file does not have."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def result_maker(node: Node, places: Mapping[str, int]) -> _Make:
    """What builds the module's result from the flat results of the file."""
    if isinstance(node, Slot):
        place = places[node.name]
        return lambda results: results[place]
    if isinstance(node, Fixed):
        return lambda _: node.value
    build = _container_maker(node)
    if [slot.name for slot in node.parts if isinstance(slot, Slot)] == [*places]:
        return build  # the results as they come
    parts = [result_maker(part, places) for part in node.parts]
    return lambda results: build([part(results) for part in parts])


def _container_maker(node: Branch) -> _Make:
    if node.kind in ("list", "cache"):
        return list
    if node.kind == "tuple":
        return tuple
    if node.kind == "namedtuple":
        made = collections.namedtuple(node.name, [str(key) for key in node.keys])  # type: ignore[misc]  # noqa: PYI024
        return made._make
    keyed: type[dict[Any, Any]] = dict if node.kind == "dict" else Fields
    return lambda parts: keyed(zip(node.keys, parts, strict=True))


# ---- arrays in, and tensors out where tensors came in


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch."""
    torch = sys.modules.get("torch")
    # torch's own isinstance takes as long as the rest of the check
    return torch is not None and (type(value) is torch.Tensor or isinstance(value, torch.Tensor))


def as_array(name: str, value: Any, dtype: np.dtype[Any] | None, rank: int | None) -> Any:
    """The array behind a value; numbers become one where the input has no axes, texts and the like stay."""
    if hasattr(value, "__array__"):
        return np.asarray(value)
    if isinstance(value, (bool, int, float)):
        return _from_number(name, value, dtype, rank)
    if value is None:
        raise DeclarationError(_none_given(name))
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if dtype is None:  # texts, or a sequence or a map, of which the runtime knows better
        return value if rank is None else np.asarray(value)
    raise DeclarationError(f"`{name}` takes an array of {dtype}, not `{type(value).__name__}`")


def from_tensor(name: str, tensor: Any) -> Array:
    """The array that shares a tensor's memory; a copy of what lies on another device."""
    try:
        return tensor.numpy()  # type: ignore[no-any-return]
    except (RuntimeError, TypeError):
        return _brought_to_cpu(name, tensor)


def _brought_to_cpu(name: str, tensor: Any) -> Array:
    try:
        return tensor.numpy(force=True)  # type: ignore[no-any-return]
    except TypeError:
        kind = str(tensor.dtype).removeprefix("torch.")
        raise DeclarationError(f"`{name}` is {kind}, of which numpy has no arrays: use `session`") from None


def in_pairs(array: Array) -> Array:
    """Complex numbers as a file takes them: real and imaginary parts along an axis more."""
    return np.ascontiguousarray(array)[..., None].view(array.real.dtype)


_SUITS: tuple[tuple[type, str], ...] = ((bool, "b"), (int, "iuf"), (float, "f"))
"""Which kinds of dtypes a Python number may become."""


def _from_number(name: str, value: float, dtype: np.dtype[Any] | None, rank: int | None) -> Array:
    if dtype is None or rank not in (0, None):
        raise DeclarationError(f"`{name}` takes an array, not the number {value!r}")
    if dtype.kind not in next(kinds for kind, kinds in _SUITS if isinstance(value, kind)):
        raise DeclarationError(f"`{name}` is the {type(value).__name__} {value!r}, but takes {dtype}")
    try:
        return np.array(value, dtype)
    except OverflowError:
        raise DeclarationError(f"`{name}` = {value} does not fit into {dtype}") from None


def as_tensors(like: Any, results: list[Any]) -> list[Any]:
    """Results as tensors on the device of this one, without a copy on the CPU; what is no array of numbers stays."""
    from_numpy = sys.modules["torch"].from_numpy
    tensors = [from_numpy(r) if isinstance(r, np.ndarray) and r.dtype.kind in "biufc" else r for r in results]
    return tensors if like.is_cpu else [one.to(like.device) if is_tensor(one) else one for one in tensors]
