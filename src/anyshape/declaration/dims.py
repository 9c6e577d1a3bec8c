"""What the user declared, checked against the example: which axis follows which dim, and which sizes a dim may take."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from anyshape.declaration.calls import Leaf, Signature
from anyshape.declaration.notation import (
    STATIC,
    Axis,
    Expression,
    SizeRange,
    did_you_mean,
    parse_axes,
    parse_expression,
    parse_sizes,
)
from anyshape.errors import DeclarationError


@dataclass(frozen=True)
class Spec:
    """The declaration in full: every input of the file, every dim with its sizes, and the sizes of the example."""

    axes: Mapping[str, tuple[Expression | None, ...]]
    """Every tensor leaf: one entry per axis, None where it is static."""
    scalars: Mapping[str, Expression]
    """Python ints that are inputs, and the size that each follows (its own name where it is free)."""
    floats: tuple[str, ...]
    """Python floats that are inputs."""
    ranges: Mapping[str, SizeRange]
    explicit: frozenset[str]
    """The dims whose sizes the user wrote."""
    example: Mapping[str, int]
    constants: Mapping[str, Any]
    """Numbers of the call that become part of the file."""
    notes: tuple[str, ...] = ()

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.ranges)

    def inputs(self, signature: Signature) -> tuple[str, ...]:
        """The leaves that are inputs of the file, in the order of the call."""
        return tuple(leaf.name for leaf in signature.leaves if leaf.name not in self.constants)

    def shape(self, leaf: str, sizes: Mapping[str, int], example: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a tensor leaf at these sizes."""
        return tuple(n if e is None else e.value(sizes) for e, n in zip(self.axes[leaf], example, strict=True))


def declare(
    signature: Signature,
    dims: Mapping[str, Any],
    sizes: Mapping[str, Any] | None = None,
    *,
    known: Mapping[str, int] | None = None,
) -> Spec:
    """Check `dims` and `sizes` against the example call, and each other; `known` are sizes that need no solving."""
    declared = _per_leaf(signature, dims)
    axes: dict[str, tuple[Expression | None, ...]] = {}
    scalars: dict[str, Expression] = {}
    floats: list[str] = []
    constants: dict[str, Any] = {}
    for leaf in signature.leaves:
        if leaf.is_tensor:
            axes[leaf.name] = _axes_of(leaf, declared.get(leaf.name))
        elif leaf.name not in declared or isinstance(leaf.value, bool):
            constants[leaf.name] = leaf.value
        elif isinstance(leaf.value, float):
            floats.append(leaf.name)
        else:
            scalars[leaf.name] = _scalar_expression(leaf, declared[leaf.name])
    example = solve(_equations(signature, axes, scalars), known)
    ranges = _ranges(example, sizes or {})
    example, notes = _inside(example, ranges)
    return Spec(axes, scalars, tuple(floats), ranges, frozenset(sizes or {}), example, constants, notes)


# ---- which declaration belongs to which leaf


def _per_leaf(signature: Signature, dims: Mapping[str, Any]) -> dict[str, Any]:
    """Wildcards and names of whole containers spread over their leaves; the most exact key wins."""
    names = [leaf.name for leaf in signature.leaves]
    found: dict[str, tuple[int, Any]] = {}
    for key, declared in dims.items():
        matches = [n for n in names if n == key] or fnmatch.filter(names, key)
        if not matches:
            raise DeclarationError(
                f"`dims` names `{key}`, but the inputs are {_listing(names)}{did_you_mean(str(key), names)}"
            )
        for name in matches:
            exactness = 1 if name == key else 0
            if name not in found or found[name][0] <= exactness:
                found[name] = (exactness, declared)
    return {name: declared for name, (_, declared) in found.items()}


def _axes_of(leaf: Leaf, declared: Any) -> tuple[Expression | None, ...]:
    shape = tuple(leaf.value.shape)
    if declared is None:
        return (None,) * len(shape)
    entries = parse_axes(declared, where=leaf.name)
    if isinstance(entries, dict):
        return _numbered(leaf, entries, shape)
    filled = _fill_ellipsis(leaf, entries, declared, len(shape))
    return tuple(_axis(leaf, axis, entry, declared) for axis, entry in enumerate(filled))


def _numbered(leaf: Leaf, entries: dict[int, Axis], shape: tuple[int, ...]) -> tuple[Expression | None, ...]:
    filled: list[Axis] = [STATIC] * len(shape)
    for axis, entry in entries.items():
        if not -len(shape) <= axis < len(shape):
            raise DeclarationError(f"`{leaf.name}` is declared with an axis {axis} but the example has shape {shape}")
        filled[axis] = entry
    return tuple(_axis(leaf, axis, entry, entries) for axis, entry in enumerate(filled))


def _fill_ellipsis(leaf: Leaf, entries: tuple[Axis | EllipsisType, ...], declared: Any, rank: int) -> list[Axis]:
    rest = [entry for entry in entries if entry is not Ellipsis]
    dots = len(entries) - len(rest)
    if dots > 1 or len(rest) > rank or (dots == 0 and len(rest) != rank):
        raise DeclarationError(
            f"`{leaf.name}` is declared `{_as_written(declared)}` but the example has shape {tuple(leaf.value.shape)}"
        )
    filled: list[Axis] = []
    for entry in entries:
        filled.extend([STATIC] * (rank - len(rest)) if entry is Ellipsis else [entry])  # type: ignore[list-item]
    return filled


def _axis(leaf: Leaf, axis: int, entry: Axis, declared: Any) -> Expression | None:
    size = leaf.value.shape[axis]
    if isinstance(entry, Expression):
        return entry if entry.names else _number(leaf, axis, entry.value({}), size, declared)
    if isinstance(entry, int):
        return _number(leaf, axis, entry, size, declared)
    return parse_expression(unnamed(leaf.name, axis)) if entry is None else None


def _number(leaf: Leaf, axis: int, number: int, size: int, declared: Any) -> None:
    if number != size:
        raise DeclarationError(
            f"`{leaf.name}` is declared `{_as_written(declared)}`, {number} on axis {axis}, "
            f"but the example has shape {tuple(leaf.value.shape)}"
        )


def unnamed(leaf: str, axis: int) -> str:
    """The name of an axis that is dynamic but was not named."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in leaf) + f"_dim{axis}"


def _scalar_expression(leaf: Leaf, declared: Any) -> Expression:
    if isinstance(declared, str) and declared.strip():
        return parse_expression(declared)
    if declared in ("", {}, (), [], None):
        return parse_expression(unnamed(leaf.name, 0).removesuffix("_dim0"))
    raise DeclarationError(f"`{leaf.name}` is a number and has no axes, but is declared `{_as_written(declared)}`")


# ---- the sizes of the example

Equation = tuple[str, Expression, int]
"""Where it stands, the expression, and its size in the example."""


def _equations(
    signature: Signature, axes: Mapping[str, tuple[Expression | None, ...]], scalars: Mapping[str, Expression]
) -> list[Equation]:
    values = signature.values
    found = [(f"axis {i} of `{n}`", e, values[n].shape[i]) for n, row in axes.items() for i, e in enumerate(row) if e]
    return found + [(f"`{name}`", expression, values[name]) for name, expression in scalars.items()]


def solve(equations: Iterable[Equation], given: Mapping[str, int] | None = None) -> dict[str, int]:
    """The size of every dim: bare names first, then expressions with one unknown; a contradiction is an error."""
    known = dict(given or {})
    first = dict.fromkeys(known, "the call of make_inputs")
    rest: list[Equation] = []
    for where, expression, size in equations:
        if not expression.is_name:
            rest.append((where, expression, size))
        elif known.setdefault(expression.text, size) != size:
            dim = expression.text
            raise DeclarationError(f"`{dim}` is {known[dim]} on {first[dim]} but {size} on {where}")
        first.setdefault(expression.text, where)
    while rest:
        rest.sort(key=lambda equation: len(_unknown(equation[1], known)))
        where, expression, size = rest.pop(0)
        unknown = _unknown(expression, known)
        if len(unknown) > 1:
            raise DeclarationError(
                f"{where} is `{expression}` = {size}, which leaves {_listing(unknown)} open: "
                "name one of them on an axis of its own, or give make_inputs="
            )
        if unknown:
            known[unknown[0]] = _solve_one(where, expression, size, unknown[0], known)
        _confirm(where, expression, size, known)
    return known


def _unknown(expression: Expression, known: Mapping[str, int]) -> list[str]:
    return [name for name in expression.names if name not in known]


def _solve_one(where: str, expression: Expression, size: int, dim: str, known: Mapping[str, int]) -> int:
    """Sizes are small: trying them in order is simple, and right for `//`, `%` and `min` too."""
    for candidate in range(size * 64 + 64):
        try:
            if expression.value({**known, dim: candidate}) == size:
                return candidate
        except ZeroDivisionError:
            continue
        if candidate > 100_000:
            break
    raise DeclarationError(f"{where} is {size} in the example, but no whole `{dim}` gives `{expression}` = {size}")


def _confirm(where: str, expression: Expression, size: int, known: Mapping[str, int]) -> None:
    try:
        computed = expression.value(known)
    except ZeroDivisionError:
        raise DeclarationError(f"{where}: `{expression}` divides by zero in the example") from None
    if computed != size:
        used = ", ".join(f"{n} = {known[n]}" for n in expression.names)
        raise DeclarationError(f"{where} is {size} in the example, but `{expression}` is {computed} with {used}")


# ---- ranges


def _ranges(example: Mapping[str, int], sizes: Mapping[str, Any]) -> dict[str, SizeRange]:
    for name in sizes:
        if name not in example:
            raise DeclarationError(
                f"sizes given for `{name}`, but the shapes only name {_listing(example)}{did_you_mean(name, example)}"
            )
    default = {dim: SizeRange(lo=min(size, 1)) for dim, size in example.items()}  # an empty example: 0 is meant, too
    return {dim: parse_sizes(sizes[dim], dim=dim) if dim in sizes else default[dim] for dim in example}


def _inside(example: Mapping[str, int], ranges: Mapping[str, SizeRange]) -> tuple[dict[str, int], tuple[str, ...]]:
    """An example outside the declared sizes is resized, with a note."""
    notes = tuple(
        f"the example's `{d}` = {n} lies outside {ranges[d]}; {ranges[d].nearest(n)} is used"
        for d, n in example.items()
        if n not in ranges[d]
    )
    return dict(example), notes


def _listing(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _as_written(declared: Any) -> str:
    if isinstance(declared, str):
        return declared
    if isinstance(declared, (list, tuple)):
        return " ".join("?" if part is None else "..." if part is Ellipsis else str(part) for part in declared)
    return str(declared)
