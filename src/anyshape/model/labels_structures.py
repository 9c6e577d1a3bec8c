"""The structure of a call and of a result, for the file's contract: which leaf stands where in the module's terms."""

from __future__ import annotations

import collections
import copy
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import torch

from anyshape.declaration.calls import Signature
from anyshape.declaration.containers import parts_of
from anyshape.declaration.outputs import flatten_outputs
from anyshape.declaration.targets import Target
from anyshape.onnxfile.structure import Branch, Fixed, Kind, Node, Parameter, Slot, Way

if TYPE_CHECKING:
    from anyshape.model.oracle import Outcome, Reference


_WAYS: dict[Any, Way] = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "both",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "many",
}


def call_structure(target: Target, signature: Signature, ports: Mapping[str, str]) -> tuple[Parameter, ...]:
    """Every parameter of the target, with the file's inputs (`ports`: leaf -> name) in their places."""
    args, kwargs = signature.build({})
    bound = target.signature.bind(*args, **kwargs).arguments
    found: list[Parameter] = []
    for name, parameter in target.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            given = bound.get(name, {})
            found += [Parameter(key, "keyword", _input_node(key, value, ports)) for key, value in given.items()]
        else:
            node = _input_node(name, bound[name], ports) if name in bound else _default(parameter)
            found.append(Parameter(name, _WAYS[parameter.kind], node))
    return tuple(found)


def _default(parameter: inspect.Parameter) -> Node:
    return Branch("tuple", (), ()) if parameter.kind is parameter.VAR_POSITIONAL else _fixed(parameter.default)


def _input_node(name: str, value: Any, ports: Mapping[str, str]) -> Node:
    if isinstance(value, (torch.Tensor, int, float)):
        return Slot(ports[name]) if name in ports else _fixed(value)
    found = parts_of(value)
    if found is None:
        return _fixed(value)
    kind, parts = found
    nodes = tuple(_input_node(f"{name}.{key}", part, ports) for key, part in parts.items())
    return _branch(kind, value, tuple(parts), nodes)


def _fixed(value: Any) -> Fixed:
    """A number or a text; JSON has neither infinity nor other objects."""
    is_plain = isinstance(value, (int, str)) or (isinstance(value, float) and math.isfinite(value))
    return Fixed(value if is_plain else None)


def _branch(kind: str, value: Any, keys: tuple[str, ...], parts: tuple[Node, ...]) -> Branch:
    if kind == "cache":
        return Branch("cache", (), tuple(_layers(keys, parts)))
    if kind in ("list", "tuple"):
        return Branch(cast("Kind", kind), (), parts)
    if kind == "dict" and type(value) in (dict, collections.OrderedDict):
        own = {str(key): key for key in value}
        return Branch("dict", tuple(own[key] if isinstance(own[key], int) else key for key in keys), parts)
    if kind == "namedtuple":
        return Branch("namedtuple", keys, parts, type(value).__name__)
    return Branch("fields", keys, parts)


def _layers(keys: Sequence[str], parts: Sequence[Node]) -> Iterator[Node]:
    """`0.key`, `0.value`, `1.key`, ...: one tuple for each layer."""
    grouped: dict[str, list[Node]] = {}
    for key, part in zip(keys, parts, strict=True):
        grouped.setdefault(key.partition(".")[0], []).append(part)
    yield from (Branch("tuple", (), tuple(layer)) for layer in grouped.values())


# ---- a result


def result_structure(reference: Reference, outcome: Outcome, names: Sequence[str]) -> Node | None:
    """What the module returns, with the file's outputs in their places; None where this call cannot tell.

    The module is called once more: outcomes keep flat tensors alone.
    """
    seen: list[Node] = []
    target = reference.target

    def watched(*args: Any, **kwargs: Any) -> Any:
        result = target.call(*args, **kwargs)
        seen.extend(_result_node(result, names))
        return result

    reference.put_back()
    twin = copy.copy(reference)
    twin.target = replace(target, call=watched)
    twin.with_leaves(outcome, {})
    return seen[0] if seen else None


def _result_node(result: Any, names: Sequence[str]) -> Iterator[Node]:
    """The tree of one result; nothing where it has other leaves than the file has outputs."""
    leaves = [id(value) for _, value in flatten_outputs(result)]
    waiting = list(zip(leaves, names, strict=False))[::-1] if len(leaves) == len(names) else []
    node = _output_node(result, waiting)
    if not waiting and len(leaves) == len(names):
        yield node


def _output_node(value: Any, waiting: list[tuple[int, str]]) -> Node:
    """Leaves come in the order in which they were flattened; a number that was left out there is part of the file."""
    if isinstance(value, (torch.Tensor, int, float)):
        if waiting and waiting[-1][0] == id(value):
            return Slot(waiting.pop()[1])
        return _fixed(value)
    found = parts_of(value)
    if found is None:
        return _fixed(value)
    kind, parts = found
    return _branch(kind, value, tuple(parts), tuple(_output_node(part, waiting) for part in parts.values()))
