"""What a file shows: the user's names for inputs, true expressions for outputs, the structure of call and result."""

from __future__ import annotations

import collections
import contextlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch

from anyshape.declaration.calls import Signature, flatten_outputs
from anyshape.declaration.containers import parts_of
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError
from anyshape.model.request import Request
from anyshape.onnxfile.contract import Branch, Fixed, Kind, Node, Parameter, Slot, Way
from anyshape.sizes.fit import FittedAxis
from anyshape.sizes.notation import Expression, did_you_mean, listed

if TYPE_CHECKING:
    from anyshape.model.oracle import Outcome, Reference


def input_ports(request: Request) -> list[str]:
    return [request.input_names.get(leaf, leaf) for leaf in request.spec.inputs(request.signature)]


def output_names(request: Request, found: Sequence[str]) -> list[str]:
    """The user's names or the leaves' own; input names are sacred, so a clashing output gets a suffix."""
    given = request.output_names
    if given is not None and len(given) > len(found):
        raise DeclarationError(
            f"output_names has {len(given)} names but the model returns {len(found)} outputs: {list(found)}"
        )
    names = [*(given or ()), *found[len(given or ()) :]]
    taken = set(input_ports(request))
    unique = []
    for name in names:
        free = name
        while free in taken:
            free += "_out"
        taken.add(free)
        unique.append(free)
    return unique


def notes_on_labels(request: Request, names: Sequence[str]) -> list[str]:
    """`dynamic_axes` may name what is not there, as with torch; a misspelt input is static then, which is said."""
    ports = input_ports(request)
    return [
        f"`dynamic_axes` names `{label}`, which is neither an input nor an output, and declares nothing: "
        f"the inputs are {listed(ports)}{did_you_mean(label, ports)}"
        for label in request.labels
        if label not in names
    ]


def declared_expressions(request: Request) -> list[Expression]:
    rows = [e for row in request.spec.axes.values() for e in row if e is not None]
    return list(dict.fromkeys([*rows, *request.spec.scalars.values()]))


def output_axes(
    request: Request,
    names: Sequence[str],
    fitted: Sequence[Sequence[FittedAxis] | None],
    observed: Sequence[Sequence[tuple[int, ...]]],
    notes: list[str],
) -> tuple[list[list[int | str] | None], dict[str, tuple[str, ...]]]:
    """What is written for every output axis, and its formula for the contract."""
    rows: list[list[int | str] | None] = []
    formulas = {}
    sizes_of: dict[str, tuple[int, ...]] = {}
    for index, (name, row) in enumerate(zip(names, fitted, strict=True)):
        if row is None:
            rows.append(None)
            notes.append(f"the number of axes of output `{name}` depends on the sizes, so the file declares none")
            continue
        labels = {axis % max(len(row), 1): label for axis, label in request.labels.get(name, {}).items()}
        written: list[int | str] = []
        for axis, size in enumerate(row):
            seen = tuple(shapes[index][axis] for shapes in observed)
            label = labels.get(axis)
            if label is not None and sizes_of.setdefault(label, seen) != seen:
                notes.append(f"axis {axis} of output `{name}` is not the `{label}` of another output")
                label = None  # one name is one size
            written.append(_written_axis(name, axis, size, label, request, notes))
        rows.append(written)
        formulas[name] = tuple("?" if size is None else str(size) for size in row)
    return rows, formulas


def _written_axis(
    name: str, axis: int, size: FittedAxis, label: str | None, request: Request, notes: list[str]
) -> int | str:
    if isinstance(size, int):
        if label is not None:
            notes.append(f"axis {axis} of output `{name}` is always {size}; the label `{label}` is not written")
        return size
    own = "".join(c if c.isalnum() or c == "_" else "_" for c in name) + f"_dim{axis}"
    if label is None or (size is not None and str(size) == label):
        return own if size is None else str(size)
    if label in request.spec.ranges:
        notes.append(f"axis {axis} of output `{name}` is `{size or own}`, not `{label}`")
        return own if size is None else str(size)
    return label


# ---- the structure of a call: which leaf stands where in the module's terms

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

    def port(leaf: str, _: Any) -> str | None:
        return ports.get(leaf)

    found: list[Parameter] = []
    for name, parameter in target.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            given = bound.get(name, {})
            found += [Parameter(key, "keyword", _node_of(key, value, port)) for key, value in given.items()]
        else:
            node = _node_of(name, bound[name], port) if name in bound else _default_node(parameter)
            found.append(Parameter(name, _WAYS[parameter.kind], node))
    return tuple(found)


def _default_node(parameter: inspect.Parameter) -> Node:
    return Branch("tuple", (), ()) if parameter.kind is parameter.VAR_POSITIONAL else _fixed_node(parameter.default)


def _node_of(name: str, value: Any, port: Callable[[str, Any], str | None]) -> Node:
    """The tree of a value; `port` is the file's name for a leaf, None where it is part of the file."""
    if isinstance(value, (torch.Tensor, int, float)):
        own = port(name, value)
        return _fixed_node(value) if own is None else Slot(own)
    found = parts_of(value)
    if found is None:
        return _fixed_node(value)
    kind, parts = found
    nodes = tuple(_node_of(f"{name}.{key}", part, port) for key, part in parts.items())
    return _branch_of(kind, value, tuple(parts), nodes)


def _fixed_node(value: Any) -> Fixed:
    """A number or a text; JSON has neither infinity nor other objects."""
    is_plain = isinstance(value, (int, str)) or (isinstance(value, float) and math.isfinite(value))
    return Fixed(value if is_plain else None)


def _branch_of(kind: str, value: Any, keys: tuple[str, ...], parts: tuple[Node, ...]) -> Branch:
    if kind == "cache":
        return Branch("cache", (), tuple(_layer_branches(keys, parts)))
    if kind in ("list", "tuple"):
        return Branch(cast("Kind", kind), (), parts)
    if kind == "dict" and type(value) in (dict, collections.OrderedDict):
        own = {str(key): key for key in value}
        return Branch("dict", tuple(own[key] if isinstance(own[key], int) else key for key in keys), parts)
    if kind == "namedtuple":
        return Branch("namedtuple", keys, parts, type(value).__name__)
    return Branch("fields", keys, parts)


def _layer_branches(keys: Sequence[str], parts: Sequence[Node]) -> Iterator[Node]:
    """`0.key`, `0.value`, `1.key`, ...: one tuple for each layer."""
    grouped: dict[str, list[Node]] = {}
    for key, part in zip(keys, parts, strict=True):
        grouped.setdefault(key.partition(".")[0], []).append(part)
    yield from (Branch("tuple", (), tuple(layer)) for layer in grouped.values())


# ---- the structure of a result


def result_structure(reference: Reference, outcome: Outcome, names: Sequence[str]) -> Node | None:
    """What the module returns, with the file's outputs in their places; None where this call cannot tell.

    The module is called once more: outcomes keep flat tensors alone.
    """
    seen: list[Node] = []
    with contextlib.suppress(Exception):  # the user's own model
        reference.module.call(outcome.leaves, look=lambda result: seen.extend(_result_node(result, names)))
    return seen[0] if seen else None


def _result_node(result: Any, names: Sequence[str]) -> Iterator[Node]:
    """The tree of one result; nothing where it has other leaves than the file has outputs."""
    leaves = [id(value) for _, value in flatten_outputs(result)]
    waiting = list(zip(leaves, names, strict=False))[::-1] if len(leaves) == len(names) else []

    def port(_: str, value: Any) -> str | None:
        # leaves come in the order in which they were flattened; a number that was left out there is part of the file
        return waiting.pop()[1] if waiting and waiting[-1][0] == id(value) else None

    node = _node_of("", result, port)
    if not waiting and len(leaves) == len(names):
        yield node
