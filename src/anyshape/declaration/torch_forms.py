"""torch's own ways of declaring: `dynamic_axes`, and `dynamic_shapes` in all its forms, as our `dims` and `sizes`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.declaration.calls import Signature
from anyshape.declaration.notation import SizeRange, did_you_mean, parse_expression
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError


@dataclass
class Declared:
    """What torch's arguments say, in our words."""

    dims: dict[str, dict[int, str | None]] = field(default_factory=dict)
    sizes: dict[str, SizeRange] = field(default_factory=dict)
    labels: dict[str, dict[int, str]] = field(default_factory=dict)
    """Names for axes of outputs."""
    notes: list[str] = field(default_factory=list)


def from_dynamic_axes(
    dynamic_axes: Mapping[str, Any], names: Mapping[str, str], output_names: Sequence[str] | None
) -> Declared:
    """`{"x": {0: "batch"}}` or `{"x": [0, 1]}`; `names` leads from the file's input names to leaves."""
    declared = Declared()
    for key, axes in dynamic_axes.items():
        rows = dict(axes) if isinstance(axes, Mapping) else dict.fromkeys(axes)
        if key in names:
            leaf = names[key]
            declared.dims[leaf] = {axis: _as_identifier(name, declared) for axis, name in rows.items()}
        elif output_names is None or key in output_names:
            declared.labels[key] = {
                axis: _as_identifier(name, declared) or f"{key}_dim{axis}" for axis, name in rows.items()
            }
        else:
            known = [*names, *output_names]
            raise DeclarationError(
                f"`dynamic_axes` names `{key}`, but the inputs and outputs are "
                f"{', '.join(f'`{n}`' for n in known)}{did_you_mean(key, known)}"
            )
    return declared


def _as_identifier(name: str | None, declared: Declared) -> str | None:
    """Any text is a name in `dynamic_axes`; what is neither a name nor an expression here gets underscores."""
    if name is None:
        return None
    try:
        return parse_expression(name).text
    except DeclarationError:
        plain = re.sub(r"\W", "_", str(name).strip())
        plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"dim_{plain}"
        declared.notes.append(f"the dim `{name}` is called `{plain}` in the file")
        return plain


def from_dynamic_shapes(dynamic_shapes: Any, target: Target, signature: Signature, args: Any, kwargs: Any) -> Declared:
    """A dict by parameter or a tuple by position, nested like the inputs; Dim objects, strings, Dim.DYNAMIC, None, numbers."""
    declared = Declared()
    if isinstance(dynamic_shapes, torch.export.dynamic_shapes.ShapesCollection):
        positional = args if isinstance(args, tuple) else (args,)
        dynamic_shapes = dynamic_shapes.dynamic_shapes(target.module, positional, kwargs or None)
    if isinstance(dynamic_shapes, Mapping):
        top = dict(dynamic_shapes)
    else:
        parameters = list(dict.fromkeys(leaf.name.split(".")[0] for leaf in signature.leaves))
        in_order = [p for p in target.signature.parameters if p in parameters] or parameters
        top = dict(
            zip(
                list(target.signature.parameters) if len(dynamic_shapes) > len(in_order) else in_order,
                dynamic_shapes,
                strict=False,
            )
        )
    leaves = {leaf.name: leaf for leaf in signature.leaves}
    for name, shapes in top.items():
        _collect(str(name), shapes, leaves, declared)
    return declared


def _collect(path: str, shapes: Any, leaves: Mapping[str, Any], declared: Declared) -> None:
    if path in leaves:
        if leaves[path].is_tensor:
            declared.dims[path] = _axes(shapes, declared)
        elif shapes is not None:
            declared.dims[path] = {}
        return
    below = [name for name in leaves if name.startswith(f"{path}.")]
    if not below:
        if shapes is None or shapes in ({}, (), []):
            return
        known = list(dict.fromkeys(name.split(".")[0] for name in leaves))
        raise DeclarationError(
            f"`dynamic_shapes` names `{path}`, but the inputs are {', '.join(f'`{n}`' for n in known)}{did_you_mean(path, known)}"
        )
    if isinstance(shapes, Mapping):
        for key, part in shapes.items():
            _collect(f"{path}.{key}", part, leaves, declared)
    elif shapes is not None:
        children = list(dict.fromkeys(name.removeprefix(f"{path}.").split(".")[0] for name in below))
        flat = len(shapes) == len(below) and len(shapes) != len(children)
        for key, part in zip(below if flat else [f"{path}.{c}" for c in children], shapes, strict=False):
            _collect(key, part, leaves, declared)


def _axes(shapes: Any, declared: Declared) -> dict[int, str | None]:
    if shapes is None:
        return {}
    rows = shapes.items() if isinstance(shapes, Mapping) else enumerate(shapes)
    found: dict[int, str | None] = {}
    for axis, entry in rows:
        if isinstance(entry, bool) or entry is None or isinstance(entry, int) or _is_hint(entry, "STATIC"):
            continue
        if isinstance(entry, str):
            found[axis] = _as_identifier(entry, declared)
        elif _is_hint(entry, "AUTO") or _is_hint(entry, "DYNAMIC"):
            found[axis] = None
        else:
            found[axis] = _dim_object(entry, declared)
    return found


def _is_hint(entry: Any, kind: str) -> bool:
    hint = getattr(torch.export.Dim, kind, None)
    return entry is hint or (hasattr(entry, "type") and getattr(entry, "type", None) == getattr(hint, "type", object()))


def _dim_object(entry: Any, declared: Declared) -> str:
    """A torch Dim: its name, and its bounds as sizes of the dim that it is or derives from."""
    name = getattr(entry, "__name__", None)
    if not isinstance(name, str):
        raise DeclarationError(f"`dynamic_shapes` holds {entry!r}, which is neither a Dim, a name nor None")
    root = getattr(entry, "root", entry)
    low, high = getattr(root, "min", None), getattr(root, "max", None)
    lo = low if isinstance(low, int) and low > 0 else 1
    hi = high if isinstance(high, int) and high < 2**31 else None
    root_name = getattr(root, "__name__", None)
    if isinstance(root_name, str) and (lo != 1 or hi is not None):
        declared.sizes[root_name] = SizeRange(lo, hi)
    return parse_expression(name).text
