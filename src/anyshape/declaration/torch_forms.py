"""torch's own ways of declaring: `dynamic_axes`, and `dynamic_shapes` in all its forms, as our `dims` and `sizes`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.declaration.calls import Signature
from anyshape.declaration.spec import unnamed
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError
from anyshape.sizes.notation import STATIC, SizeRange, listed, parse_expression, unknown_name


@dataclass
class Declared:
    """What torch's arguments say, in our words."""

    dims: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, SizeRange] = field(default_factory=dict)
    labels: dict[str, dict[int, str]] = field(default_factory=dict)
    """Names for axes of outputs."""
    notes: list[str] = field(default_factory=list)
    written: AbstractSet[str] = frozenset()
    """All names as they were written."""
    offered: frozenset[str] = frozenset()
    """Dims whose sizes nobody wrote: what the model cannot do of them is a limit, not a refusal."""
    yielding: set[str] = field(default_factory=set)
    """Dims that stay static where no file serves them: nobody asked for them, or with `Dim.AUTO` alone."""


# ---- dynamic_axes


def from_dynamic_axes(dynamic_axes: Mapping[str, Any], names: Mapping[str, str], signature: Signature) -> Declared:
    """`{"x": {0: "batch"}}` or `{"x": [0, 1]}`; `names` leads from the file's input names to leaves."""
    rows = {key: _names_by_axis(key, axes) for key, axes in dynamic_axes.items()}
    declared = Declared(written={str(n).strip() for axes in rows.values() for n in axes.values() if n is not None})
    for key, axes in rows.items():
        named = {axis: None if name is None else _as_size(str(name), declared) for axis, name in axes.items()}
        if key in names:
            declared.dims[names[key]] = named
        else:  # an output, or nothing at all: the model has not run yet
            declared.labels[key] = {axis: name or f"{key}_dim{axis}" for axis, name in named.items()}
    _refuse_one_name_for_two_sizes(declared.dims, signature)
    return declared


def _refuse_one_name_for_two_sizes(dims: Mapping[str, Any], signature: Signature) -> None:
    """For torch, a name of an axis is a label that may stand anywhere; here it is one size."""
    shapes = {leaf.name: tuple(leaf.value.shape) for leaf in signature.leaves if leaf.is_tensor}
    seen: dict[str, tuple[int, str]] = {}
    for leaf, axes in dims.items():
        shape = shapes.get(leaf, ())
        for axis, name in axes.items():
            if name is None or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
                continue
            size, where = shape[axis], f"axis {axis} of `{leaf}`"
            first, there = seen.setdefault(name, (size, where))
            if size != first:
                other = f"{name}_{axis % len(shape)}" if leaf in there else f"{name}_{as_identifier(leaf)}"
                raise DeclarationError(
                    f"`{name}` names {there}, {first} in the example, and {where}, {size}: to torch that is a label, "
                    f"here one name is one size; call the second `{other}`, or give an example where both are alike"
                )


def _names_by_axis(key: str, axes: Any) -> dict[int, Any]:
    if isinstance(axes, str) or not isinstance(axes, (Mapping, Sequence, AbstractSet)):
        raise DeclarationError(f'`dynamic_axes` has {axes!r} for `{key}`: write {{0: "batch"}} or a list of axes')
    return dict(axes) if isinstance(axes, Mapping) else dict.fromkeys(axes)


def _as_size(name: str, declared: Declared) -> str:
    """Any text is a name here. It is an expression if its names stand alone elsewhere; else it gets underscores."""
    try:
        names = set(parse_expression(name).names)
    except DeclarationError:
        names = set()
    if names and names <= declared.written and name.strip() != STATIC:
        return parse_expression(name).text
    plain = as_identifier(name)
    note = f"the dim `{name}` is called `{plain}` in the file"
    if note not in declared.notes:
        declared.notes.append(note)
    return plain


def as_identifier(name: str) -> str:
    """Any text as a name of a dim."""
    plain = re.sub(r"\W", "_", name.strip())
    try:
        is_name = plain != STATIC and parse_expression(plain).is_name
    except DeclarationError:
        is_name = False
    return plain if is_name else f"dim_{plain}"


# ---- dynamic_shapes


def from_dynamic_shapes(dynamic_shapes: Any, target: Target, signature: Signature, args: Any, kwargs: Any) -> Declared:
    """A dict by parameter or a tuple by position, nested like the inputs; Dims, names, Dim.DYNAMIC, None, numbers."""
    if isinstance(dynamic_shapes, torch.export.ShapesCollection):
        positional = args if isinstance(args, tuple) else (args,)
        dynamic_shapes = dynamic_shapes.dynamic_shapes(target.module, positional, kwargs or None)  # type: ignore[no-untyped-call]
    declared = Declared(written=frozenset(_names_written(dynamic_shapes)))
    leaves = {leaf.name: leaf.is_tensor for leaf in signature.leaves}
    for name, shapes in _by_parameter(dynamic_shapes, target, signature).items():
        _declare_below(str(name), shapes, leaves, declared)
    by_axis = {leaf: axes for leaf, axes in declared.dims.items() if isinstance(axes, Mapping)}
    labels = {leaf: {at: one for at, one in axes.items() if one in declared.written} for leaf, axes in by_axis.items()}
    _refuse_one_name_for_two_sizes(labels, signature)
    return declared


def _names_written(dynamic_shapes: Any) -> Iterator[str]:
    if isinstance(dynamic_shapes, str):
        yield dynamic_shapes.strip()
    elif isinstance(dynamic_shapes, (Mapping, list, tuple)):
        for part in dynamic_shapes.values() if isinstance(dynamic_shapes, Mapping) else dynamic_shapes:
            yield from _names_written(part)


def _by_parameter(dynamic_shapes: Any, target: Target, signature: Signature) -> dict[str, Any]:
    if isinstance(dynamic_shapes, Mapping):
        return dict(dynamic_shapes)
    if not isinstance(dynamic_shapes, (tuple, list)):
        raise DeclarationError(
            f"`dynamic_shapes` is {dynamic_shapes!r}: give a dict by input or a tuple in their order"
        )
    called = _called_parameters(target, signature)
    if len(dynamic_shapes) != len(called):
        count = len(dynamic_shapes)
        raise DeclarationError(f"`dynamic_shapes` has {count} entries, but the call passes {listed(called)}")
    return dict(zip(called, dynamic_shapes, strict=True))


def _called_parameters(target: Target, signature: Signature) -> list[str]:
    """The parameters that the call passes, in the order of the signature; what `**kwargs` takes comes last."""
    parameters = target.signature.parameters
    found = []
    for index, (name, parameter) in enumerate(parameters.items()):
        by_position = parameter.kind is not parameter.KEYWORD_ONLY and index < len(signature.positional)
        if (by_position and parameter.kind is not parameter.VAR_KEYWORD) or name in signature.keywords:
            found.append(name)
    return [*found, *(name for name in signature.keywords if name not in parameters)]


def _declare_below(path: str, shapes: Any, leaves: Mapping[str, bool], declared: Declared) -> None:
    """Declare what stands at or below a path; `leaves` says which are tensors."""
    if path in leaves:
        if leaves[path]:
            declared.dims[path] = _axes_of_tensor(path, shapes, declared)
        elif shapes is not None and not _is_hint(shapes, "STATIC"):
            declared.dims[path] = ""
        return
    below = [name for name in leaves if name.startswith(f"{path}.")]
    if shapes is None or (not below and not shapes):
        return
    if not below:
        raise unknown_name("dynamic_shapes", path, (name.split(".")[0] for name in leaves))
    for key, part in _parts_below(path, shapes, below):
        _declare_below(key, part, leaves, declared)


def _parts_below(path: str, shapes: Any, below: Sequence[str]) -> list[tuple[str, Any]]:
    """The parts of a container and what is declared for each."""
    if isinstance(shapes, Mapping) and set(shapes) == {"key_cache", "value_cache"}:
        shapes = [shapes["key_cache"], shapes["value_cache"]]
    if isinstance(shapes, Mapping):
        return [(f"{path}.{key}", part) for key, part in shapes.items()]
    if not isinstance(shapes, (tuple, list)):
        raise DeclarationError(f"`dynamic_shapes` has {shapes!r} for `{path}`, which holds {len(below)} inputs")
    layers = [name.removesuffix(".key") for name in below if name.endswith(".key")]
    if 2 * len(layers) == len(below):
        return _cache_children(path, shapes, layers)
    keys = list(dict.fromkeys(name.removeprefix(f"{path}.").split(".")[0] for name in below))
    if all(key.isdecimal() for key in keys):
        return [(f"{path}.{index}", part) for index, part in enumerate(shapes)]  # a list may hold None
    if len(shapes) != len(keys):
        raise DeclarationError(f"`dynamic_shapes` has {len(shapes)} entries for `{path}`, which holds {len(keys)}")
    return [(f"{path}.{key}", part) for key, part in zip(keys, shapes, strict=True)]


def _cache_children(path: str, shapes: Sequence[Any], layers: Sequence[str]) -> list[tuple[str, Any]]:
    """Hugging Face flattens a cache to its keys and then its values; others to key and value of each layer."""
    if len(shapes) == 2 and all(isinstance(part, (list, tuple)) and len(part) == len(layers) for part in shapes):
        pairs = list(zip(*shapes, strict=True))
    elif len(shapes) == 2 * len(layers):
        pairs = list(zip(shapes[::2], shapes[1::2], strict=True))
    elif len(shapes) == len(layers):
        pairs = [(pair["key"], pair["value"]) if isinstance(pair, Mapping) else tuple(pair) for pair in shapes]
    else:
        raise DeclarationError(
            f"`dynamic_shapes` has {len(shapes)} entries for `{path}`, which holds {len(layers)} keys and values"
        )
    named = zip(layers, pairs, strict=True)
    return [
        (f"{layer}.{kind}", part) for layer, pair in named for kind, part in zip(("key", "value"), pair, strict=True)
    ]


def _axes_of_tensor(path: str, shapes: Any, declared: Declared) -> dict[int, Any]:
    if shapes is None or _is_hint(shapes, "STATIC"):
        return {}
    if not isinstance(shapes, (Mapping, tuple, list)):
        raise DeclarationError(
            f"`dynamic_shapes` has {shapes!r} for the tensor `{path}`: write {{axis: Dim}} or a tuple"
        )
    rows = shapes.items() if isinstance(shapes, Mapping) else enumerate(shapes)
    return {axis: _axis_entry(path, axis, entry, declared) for axis, entry in rows if entry is not None}


def _axis_entry(path: str, axis: int, entry: Any, declared: Declared) -> str | int | None:
    if isinstance(entry, int) or _is_hint(entry, "STATIC"):
        return STATIC if not isinstance(entry, int) else entry
    if isinstance(entry, str):
        return _as_size(entry, declared)
    if _is_hint(entry, "AUTO") or _is_hint(entry, "DYNAMIC"):
        dim = unnamed(path, axis)
        _declare_bounds(dim, entry, declared)
        declared.yielding |= {dim} if _is_hint(entry, "AUTO") else set()
        return None
    return _dim_object(entry, declared)


def _is_hint(entry: Any, kind: str) -> bool:
    hint = getattr(torch.export.Dim, kind, None)
    return entry is hint or (hasattr(entry, "type") and entry.type == getattr(hint, "type", object()))


def _dim_object(entry: Any, declared: Declared) -> str:
    """A torch Dim: its name, and its bounds as sizes of the dim that it is or derives from."""
    name = getattr(entry, "__name__", None)
    if not isinstance(name, str):
        raise DeclarationError(f"`dynamic_shapes` holds {entry!r}, which is neither a Dim, a name nor None")
    root = getattr(entry, "root", entry)
    _declare_bounds(str(getattr(root, "__name__", name)), root, declared)
    return parse_expression(name).text


def _declare_bounds(dim: str, entry: Any, declared: Declared) -> None:
    low, high = getattr(entry, "min", None), getattr(entry, "max", None)
    lo = low if isinstance(low, int) and low > 0 else 1
    hi = high if isinstance(high, int) and high < 2**31 else None
    if lo != 1 or hi is not None:
        declared.sizes[dim] = SizeRange(lo, hi)
