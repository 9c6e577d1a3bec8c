"""Which axes of a file are to be free: the user's declaration, held against the inputs that the file has."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.onnxfile.interface import Interface, Port
from anyshape.sizes.notation import STATIC, Axis, Expression, SizeRange, did_you_mean, parse_axes, parse_sizes
from anyshape.sizes.spelling import argument

BATCH = "batch"
Wanted = Mapping[str, tuple[str | None, ...]]
"""Input -> the dim's name for each axis, None where the axis stays as it is."""


@dataclass(frozen=True)
class Declaration:
    """The dims that are to be free: on which axes, what they are in the file, and which sizes they may take."""

    wanted: Wanted
    sizes: Mapping[str, int]
    """What each dim is in the file; those that the file leaves open have none until `at` gives them one."""
    ranges: Mapping[str, SizeRange]
    notes: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """The dims that the file leaves open by itself."""

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    @property
    def frozen_sizes(self) -> dict[str, int]:
        """The dims that are numbers in the file."""
        return {dim: size for dim, size in self.sizes.items() if dim not in self.kept}

    @property
    def open_dims(self) -> tuple[str, ...]:
        """The dims without a size so far."""
        return tuple(dim for dim in self.ranges if dim not in self.sizes)

    def at(self, sizes: Mapping[str, int]) -> Declaration:
        """With sizes for the dims that the file leaves open, at which it is the reference for others."""
        return replace(self, sizes={dim: self.sizes.get(dim, sizes.get(dim, 1)) for dim in self.ranges})

    def shape(self, port: Port) -> tuple[int, ...]:
        """The shape of an input at the sizes of the file."""
        names = self.wanted.get(port.name, (None,) * len(port.axes or ()))
        pairs = zip(port.axes or (), names, strict=True)
        return tuple(self.sizes[name] if name is not None else int(axis or 0) for axis, name in pairs)


def declare_free(
    interface: Interface, dims: Mapping[str, Any] | None, sizes: Mapping[str, Any] | None = None
) -> Declaration:
    """Check `dims` and `sizes` against the inputs of the file; without `dims`, a batch is looked for on axis 0."""
    ports = _ports(interface)
    if dims is None:
        wanted, notes = _batch_on_axis_0(ports)
    else:
        wanted, notes = _declared_rows(ports, dims), ()
    if not any(name and _shape(ports[leaf])[axis] for leaf, row in wanted.items() for axis, name in enumerate(row)):
        advice = "write the name of each axis that is to be free, such as `batch`"
        raise DeclarationError(f"`{argument('dims')}` names no dim: {advice}")
    wanted, kept = _with_open_axes(ports, wanted)
    found = _sizes_in_file(ports, wanted)
    kept = tuple(dim for dim in kept if dim not in found)
    every = dict.fromkeys(name for row in wanted.values() for name in row if name is not None)
    return Declaration(wanted, found, _size_ranges(every, sizes or {}), notes, kept)


def _ports(interface: Interface) -> dict[str, Port]:
    """The inputs by name; at least one axis must be a number."""
    for port in interface.inputs:
        if port.axes is None:
            raise DeclarationError(f"input `{port.name}` declares no axes: the file does not say what it was made for")
        for size in port.axes:
            if isinstance(size, int) and size < 1:
                raise DeclarationError(f"input `{port.name}` declares the size {size}")
    if not interface.inputs:
        raise DeclarationError("the file has no inputs: nothing can be free")
    shapes = [_shape(port) for port in interface.inputs]
    if any(shapes) and not any(size for shape in shapes for size in shape):
        raise DeclarationError("no axis of an input is a number: the file is dynamic already")
    return {port.name: port for port in interface.inputs}


def _shape(port: Port) -> tuple[int | None, ...]:
    """The sizes of the axes, None where the file leaves one open."""
    return tuple(axis if isinstance(axis, int) else None for axis in port.axes or ())


def _shape_text(port: Port) -> str:
    """The shape as a reader writes it: `(batch, 3)`."""
    axes = [str(axis) if axis is not None else "?" for axis in port.axes or ()]
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"


def _open_name(port: Port, axis: int) -> str:
    """How an axis is called that the file leaves open."""
    own = str((port.axes or ())[axis] or "")
    return own if own.isidentifier() else re.sub(r"\W", "_", f"{port.name}_dim{axis}")


Rows = dict[str, tuple[str | None, ...]]


def _with_open_axes(ports: Mapping[str, Port], wanted: Rows) -> tuple[Rows, tuple[str, ...]]:
    """Axes that are open stay so, under the file's name or under the one that the user gives to it."""
    renamed: dict[str, str] = {}
    for leaf, row in wanted.items():
        for axis, name in enumerate(row):
            if name is not None and _shape(ports[leaf])[axis] is None:
                renamed.setdefault(_open_name(ports[leaf], axis), name)
    every = {leaf: _dims_of(ports[leaf], wanted.get(leaf), renamed) for leaf in dict.fromkeys((*wanted, *ports))}
    rows = {leaf: row for leaf, row in every.items() if any(row)}
    kept = {name for leaf, row in rows.items() for name, size in zip(row, _shape(ports[leaf]), strict=True) if not size}
    return rows, tuple(sorted(name for name in kept if name is not None))


def _dims_of(port: Port, wanted: tuple[str | None, ...] | None, renamed: Mapping[str, str]) -> tuple[str | None, ...]:
    """The dims of one input: the wanted ones, then those that it leaves open."""
    names = []
    for axis, size in enumerate(_shape(port)):
        own = _open_name(port, axis)
        wish = wanted[axis] if wanted is not None else None
        names.append(renamed.get(own, own) if wish is None and size is None else wish)
    return tuple(names)


# ---- without a declaration


def _batch_on_axis_0(ports: Mapping[str, Port]) -> tuple[Rows, tuple[str, ...]]:
    """`batch` on axis 0 of every input that has the size which most inputs have there."""
    if not any(_shape(port) for port in ports.values()):
        raise DeclarationError("no input has an axis: nothing can be free")
    first = {name: size for name, port in ports.items() for size in _shape(port)[:1] if size is not None}
    already = [name for name, port in ports.items() if _shape(port)[:1] == (None,)]
    if already:
        raise DeclarationError(
            f"axis 0 of {_list_of(already)} is open already: name the axes that are to be free in `{argument('dims')}`"
        )
    size = Counter(first.values()).most_common(1)[0][0]
    sharing = [name for name, number in first.items() if number == size]
    wanted = {name: (BATCH, *(None,) * (len(_shape(ports[name])) - 1)) for name in sharing}
    others = [f"`{name}` has {number} there" for name, number in first.items() if name not in wanted]
    rest = f"; {', '.join(others)} and stays as it is" if others else ""
    return wanted, (f"no dims were declared: `{BATCH}` is axis 0 of {_list_of(sharing)}{rest}",)


# ---- with one


def _declared_rows(ports: Mapping[str, Port], dims: Mapping[str, Any]) -> Rows:
    if not isinstance(dims, Mapping):
        raise DeclarationError(f'dims is {dims!r}: give a dict, such as {{"x": "batch 3 224 224"}}')
    found: dict[str, tuple[bool, tuple[str | None, ...]]] = {}
    for key, declared in dims.items():
        for name in _inputs_named(str(key), ports):
            if name == key or name not in found or not found[name][0]:  # the exact name wins
                found[name] = (name == key, _axes_of(ports[name], declared))
    return {name: axes for name, (_, axes) in found.items() if any(axes)}


def _inputs_named(key: str, ports: Mapping[str, Port]) -> list[str]:
    names = [key] if key in ports else [name for name in ports if fnmatch.fnmatchcase(name, key)]
    if not names:
        known = f"{_list_of(ports)}{did_you_mean(key, ports)}"
        raise DeclarationError(f"`{argument('dims')}` names `{key}`, but the inputs are {known}")
    return names


def _axes_of(port: Port, declared: Any) -> tuple[str | None, ...]:
    if declared is None:
        return (None,) * len(_shape(port))
    entries = parse_axes(declared, where=port.name)
    filled = _by_axis(port, entries) if isinstance(entries, dict) else _in_order(port, entries, declared)
    return tuple(_dim(port, axis, entry) for axis, entry in enumerate(filled))


def _by_axis(port: Port, entries: Mapping[int, Axis]) -> list[Axis]:
    shape = _shape(port)
    filled: list[Axis] = [STATIC] * len(shape)
    for axis, entry in entries.items():
        if not -len(shape) <= axis < len(shape):
            raise DeclarationError(
                f"`{port.name}` is declared with an axis {axis} but has shape {_shape_text(port)} in the file"
            )
        filled[axis] = entry
    return filled


def _in_order(port: Port, entries: tuple[Axis | EllipsisType, ...], declared: Any) -> list[Axis]:
    shape = _shape(port)
    rest = len([entry for entry in entries if entry is not Ellipsis])
    dots = len(entries) - rest
    if dots > 1 or rest > len(shape) or (dots == 0 and rest != len(shape)):
        written = declared if isinstance(declared, str) else " ".join(map(_as_written, declared))
        raise DeclarationError(f"`{port.name}` is declared `{written}` but has shape {_shape_text(port)} in the file")
    filled: list[Axis] = []
    for entry in entries:
        filled.extend([STATIC] * (len(shape) - rest) if isinstance(entry, EllipsisType) else [entry])
    return filled


def _as_written(entry: Any) -> str:
    return "?" if entry is None else "..." if entry is Ellipsis else str(entry)


def _dim(port: Port, axis: int, entry: Axis) -> str | None:
    """The name of a free axis, None for one that stays."""
    if entry is None:
        return _open_name(port, axis)
    if isinstance(entry, Expression):
        if not entry.is_name:
            raise DeclarationError(f"axis {axis} of `{port.name}` is declared `{entry}`: give it a name of its own")
        return entry.text
    if entry not in (STATIC, _shape(port)[axis]):
        raise DeclarationError(
            f"`{port.name}` is declared {entry} on axis {axis} but has shape {_shape_text(port)} in the file"
        )
    return None


# ---- sizes


def _sizes_in_file(ports: Mapping[str, Port], wanted: Wanted) -> dict[str, int]:
    """What each dim is in the file; one name is one size."""
    found: dict[str, int] = {}
    where: dict[str, str] = {}
    for name, dims in wanted.items():
        for axis, (dim, size) in enumerate(zip(dims, _shape(ports[name]), strict=True)):
            if dim is None or size is None:
                continue
            place = where.setdefault(dim, f"axis {axis} of `{name}`")
            if found.setdefault(dim, size) != size:
                raise DeclarationError(f"`{dim}` is {found[dim]} on {place} but {size} on axis {axis} of `{name}`")
    return found


def _size_ranges(found: Iterable[str], sizes: Mapping[str, Any]) -> dict[str, SizeRange]:
    for name in sizes:
        if name not in found:
            known = f"{_list_of(found)}{did_you_mean(str(name), found)}"
            raise DeclarationError(f"{argument('sizes')} given for `{name}`, but the dims are {known}")
    return {dim: parse_sizes(sizes[dim], dim=dim) if dim in sizes else SizeRange() for dim in found}


def _list_of(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
