"""Which axes of a file are to be free: the user's declaration, held against the inputs that the file has."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from anyshape.declaration.notation import (
    STATIC,
    Axis,
    Expression,
    SizeRange,
    did_you_mean,
    parse_axes,
    parse_sizes,
)
from anyshape.errors import DeclarationError
from anyshape.onnxfile.interface import Interface, Port

BATCH = "batch"


@dataclass(frozen=True)
class Declaration:
    """The dims that are to be free: on which axes, what they are in the file, and which sizes they may take."""

    wanted: Mapping[str, tuple[str | None, ...]]
    """Input -> the dim of each axis, None where it stays as it is."""
    sizes: Mapping[str, int]
    ranges: Mapping[str, SizeRange]
    notes: tuple[str, ...] = ()

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.sizes)


def declare_free(
    interface: Interface, dims: Mapping[str, Any] | None, sizes: Mapping[str, Any] | None = None
) -> Declaration:
    """Check `dims` and `sizes` against the inputs of the file; without `dims`, a batch is looked for on axis 0."""
    ports = _static_ports(interface)
    if dims is None:
        wanted, notes = _batch_on_axis_0(ports)
    else:
        wanted, notes = _declared(ports, dims), ()
    found = _sizes_in_file(ports, wanted)
    if not found:
        raise DeclarationError("`dims` names no dim: write the name of each axis that is to be free, such as `batch`")
    return Declaration(wanted, found, _ranges(found, sizes or {}), notes)


def _static_ports(interface: Interface) -> dict[str, Port]:
    """The inputs by name; each axis must be a number, since the file is run at its own sizes."""
    for port in interface.inputs:
        if port.axes is None:
            raise DeclarationError(f"input `{port.name}` declares no axes: the file does not say what it was made for")
        for axis, size in enumerate(port.axes):
            if not isinstance(size, int):
                named = "has no size" if size is None else f"is `{size}`"
                raise DeclarationError(f"axis {axis} of input `{port.name}` {named}: the file is dynamic already")
            if size < 1:
                raise DeclarationError(f"input `{port.name}` declares the size {size}")
    if not interface.inputs:
        raise DeclarationError("the file has no inputs: nothing can be free")
    return {port.name: port for port in interface.inputs}


def _shape(port: Port) -> tuple[int, ...]:
    return tuple(axis for axis in port.axes or () if isinstance(axis, int))


# ---- without a declaration


def _batch_on_axis_0(ports: Mapping[str, Port]) -> tuple[dict[str, tuple[str | None, ...]], tuple[str, ...]]:
    """`batch` on axis 0 of every input that has the size which most inputs have there."""
    first = {name: _shape(port)[0] for name, port in ports.items() if _shape(port)}
    if not first:
        raise DeclarationError("no input has an axis: nothing can be free")
    size = Counter(first.values()).most_common(1)[0][0]
    sharing = [name for name, number in first.items() if number == size]
    wanted = {name: (BATCH, *(None,) * (len(_shape(ports[name])) - 1)) for name in sharing}
    others = [f"`{name}` has {number} there" for name, number in first.items() if name not in wanted]
    rest = f"; {', '.join(others)} and stays as it is" if others else ""
    return wanted, (f"no dims were declared: `{BATCH}` is axis 0 of {_listing(sharing)}{rest}",)


# ---- with one


def _declared(ports: Mapping[str, Port], dims: Mapping[str, Any]) -> dict[str, tuple[str | None, ...]]:
    if not isinstance(dims, Mapping):
        raise DeclarationError(f'dims is {dims!r}: give a dict, such as {{"x": "batch 3 224 224"}}')
    found: dict[str, tuple[bool, tuple[str | None, ...]]] = {}
    for key, declared in dims.items():
        for name in _matches(str(key), ports):
            if name == key or name not in found or not found[name][0]:  # the exact name wins
                found[name] = (name == key, _axes_of(ports[name], declared))
    return {name: axes for name, (_, axes) in found.items() if any(axes)}


def _matches(key: str, ports: Mapping[str, Port]) -> list[str]:
    names = [key] if key in ports else [name for name in ports if fnmatch.fnmatchcase(name, key)]
    if not names:
        raise DeclarationError(f"`dims` names `{key}`, but the inputs are {_listing(ports)}{did_you_mean(key, ports)}")
    return names


def _axes_of(port: Port, declared: Any) -> tuple[str | None, ...]:
    if declared is None:
        return (None,) * len(_shape(port))
    entries = parse_axes(declared, where=port.name)
    filled = _numbered(port, entries) if isinstance(entries, dict) else _filled(port, entries, declared)
    return tuple(_dim(port, axis, entry) for axis, entry in enumerate(filled))


def _numbered(port: Port, entries: Mapping[int, Axis]) -> list[Axis]:
    shape = _shape(port)
    filled: list[Axis] = [STATIC] * len(shape)
    for axis, entry in entries.items():
        if not -len(shape) <= axis < len(shape):
            raise DeclarationError(f"`{port.name}` is declared with an axis {axis} but has shape {shape} in the file")
        filled[axis] = entry
    return filled


def _filled(port: Port, entries: tuple[Axis | EllipsisType, ...], declared: Any) -> list[Axis]:
    shape = _shape(port)
    rest = len([entry for entry in entries if entry is not Ellipsis])
    dots = len(entries) - rest
    if dots > 1 or rest > len(shape) or (dots == 0 and rest != len(shape)):
        written = declared if isinstance(declared, str) else " ".join(map(_as_written, declared))
        raise DeclarationError(f"`{port.name}` is declared `{written}` but has shape {shape} in the file")
    filled: list[Axis] = []
    for entry in entries:
        filled.extend([STATIC] * (len(shape) - rest) if isinstance(entry, EllipsisType) else [entry])
    return filled


def _as_written(entry: Any) -> str:
    return "?" if entry is None else "..." if entry is Ellipsis else str(entry)


def _dim(port: Port, axis: int, entry: Axis) -> str | None:
    """The name of a free axis, None for one that stays."""
    if entry is None:
        return re.sub(r"\W", "_", f"{port.name}_dim{axis}")
    if isinstance(entry, Expression):
        if not entry.is_name:
            raise DeclarationError(f"axis {axis} of `{port.name}` is declared `{entry}`: give it a name of its own")
        return entry.text
    if entry not in (STATIC, _shape(port)[axis]):
        raise DeclarationError(
            f"`{port.name}` is declared {entry} on axis {axis} but has shape {_shape(port)} in the file"
        )
    return None


# ---- sizes


def _sizes_in_file(ports: Mapping[str, Port], wanted: Mapping[str, tuple[str | None, ...]]) -> dict[str, int]:
    """What each dim is in the file; one name is one size."""
    found: dict[str, int] = {}
    where: dict[str, str] = {}
    for name, dims in wanted.items():
        for axis, (dim, size) in enumerate(zip(dims, _shape(ports[name]), strict=True)):
            if dim is None:
                continue
            place = where.setdefault(dim, f"axis {axis} of `{name}`")
            if found.setdefault(dim, size) != size:
                raise DeclarationError(f"`{dim}` is {found[dim]} on {place} but {size} on axis {axis} of `{name}`")
    return found


def _ranges(found: Mapping[str, int], sizes: Mapping[str, Any]) -> dict[str, SizeRange]:
    for name in sizes:
        if name not in found:
            raise DeclarationError(
                f"sizes given for `{name}`, but the dims are {_listing(found)}{did_you_mean(str(name), found)}"
            )
    return {dim: parse_sizes(sizes[dim], dim=dim) if dim in sizes else SizeRange() for dim in found}


def _listing(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
