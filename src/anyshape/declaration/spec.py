"""What the user declared, checked against the example: which axis follows which dim, and which sizes a dim may take."""

from __future__ import annotations

import bisect
import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Any, Literal

from anyshape.declaration.calls import Leaf, Signature
from anyshape.errors import DeclarationError
from anyshape.sizes import budgets, notation
from anyshape.sizes.conditions import fitting_sizes, narrowed_range, parse_where
from anyshape.sizes.notation import Axis, Condition, Expression, SizeRange, Sizes
from anyshape.sizes.spelling import argument, give_calls


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
    where: tuple[Condition, ...] = ()
    """Relations between dims that the user wrote."""
    draws: Mapping[str, Literal["normal", "uniform"]] = field(default_factory=dict)
    """Leaves that hold what the model would draw: `normal` or `uniform` noise."""

    @property
    def start(self) -> Sizes:
        """The example's sizes, moved into what was declared."""
        return fitting_sizes(self.example, self.ranges, self.where)

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
    where: Sequence[str] = (),
    known: Mapping[str, int] | None = None,
) -> Spec:
    """Check `dims`, `sizes` and `where` against the example call, and each other; `known` dims need no solving."""
    declared = _per_leaf(signature, dims)
    axes: dict[str, tuple[Expression | None, ...]] = {}
    scalars: dict[str, Expression] = {}
    floats: list[str] = []
    constants: dict[str, Any] = {}
    for leaf in signature.leaves:
        if leaf.is_tensor:
            axes[leaf.name] = _axes_of(leaf, declared.get(leaf.name))
        elif leaf.name not in declared:
            constants[leaf.name] = leaf.value
        elif isinstance(leaf.value, float):
            floats.append(_float_input(leaf, declared[leaf.name]))
        else:
            scalars[leaf.name] = _scalar_expression(leaf, declared[leaf.name])
    equations = _equations(signature, axes, scalars)
    used = {name for _, expression, _ in equations for name in expression.names}
    example = solve(equations, {dim: size for dim, size in (known or {}).items() if dim in used})
    conditions = parse_where(where, example)
    declared_ranges = _ranges_of(example, sizes or {})
    # before ranges are narrowed, so that a contradiction is told in the user's own terms
    start = fitting_sizes(example, declared_ranges, conditions)
    ranges = {dim: narrowed_range(one, conditions, dim) for dim, one in declared_ranges.items()}
    notes = (*_notes_on_ranges(example, ranges), *_notes_on_relations(example, ranges, conditions, start))
    written = {*(sizes or {}), *(one.names[0] for one in conditions if len(one.names) == 1)}
    return Spec(axes, scalars, tuple(floats), ranges, frozenset(written), example, constants, notes, conditions)


# ---- which declaration belongs to which leaf


def _per_leaf(signature: Signature, dims: Mapping[str, Any]) -> dict[str, Any]:
    """Wildcards and names of whole containers spread over the tensors below; the most exact key wins."""
    found: dict[str, tuple[tuple[bool, int], Any]] = {}
    for key, declared in _flat_declarations(dims):
        for name in _leaves_named(key, signature):
            exactness = (name == key, len(key))
            if name not in found or found[name][0] <= exactness:
                found[name] = (exactness, declared)
    return {name: declared for name, (_, declared) in found.items()}


def mentioned(dims: Mapping[str, Any]) -> tuple[str, ...]:
    """The dims that a declaration names, before any example is known."""
    found: dict[str, None] = {}
    for key, declared in _flat_declarations(dims):
        entries = notation.parse_axes("" if declared is None else declared, where=key)
        for entry in entries.values() if isinstance(entries, dict) else entries:
            found |= dict.fromkeys(entry.names if isinstance(entry, Expression) else ())
    return tuple(found)


def _flat_declarations(dims: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """`{"batch": {"ids": "n seq"}}` says the same as `{"batch.ids": "n seq"}`."""
    for key, declared in dims.items():
        if isinstance(declared, Mapping) and any(isinstance(k, str) for k in declared):
            yield from _flat_declarations(declared, f"{above}{key}.")
        else:
            yield f"{above}{key}", declared


def _leaves_named(key: str, signature: Signature) -> list[str]:
    names = [leaf.name for leaf in signature.leaves]
    if key in names:
        return [key]
    tensors = [leaf.name for leaf in signature.leaves if leaf.is_tensor]
    matches = [name for name in tensors if fnmatch.fnmatchcase(name, key) or name.startswith(f"{key}.")]
    if not matches:
        raise notation.unknown_name("dims", key, names)
    return matches


def _axes_of(leaf: Leaf, declared: Any) -> tuple[Expression | None, ...]:
    if declared is None:
        return tuple(None for _ in leaf.value.shape)
    entries = notation.parse_axes(declared, where=leaf.name)
    filled = _fill_numbered(leaf, entries) if isinstance(entries, dict) else _fill_ellipsis(leaf, entries, declared)
    filled += [notation.STATIC] * (leaf.value.dim() - len(filled))  # the pairs of complex numbers
    return tuple(_declared_axis(leaf, axis, entry, declared) for axis, entry in enumerate(filled))


def _fill_numbered(leaf: Leaf, entries: dict[int, Axis]) -> list[Axis]:
    shape = leaf.shape
    filled: list[Axis] = [notation.STATIC] * len(shape)
    for axis, entry in entries.items():
        if not -len(shape) <= axis < len(shape):
            raise DeclarationError(f"`{leaf.name}` is declared with an axis {axis} but the example has shape {shape}")
        filled[axis] = entry
    return filled


def _fill_ellipsis(leaf: Leaf, entries: tuple[Axis | EllipsisType, ...], declared: Any) -> list[Axis]:
    rest = [entry for entry in entries if entry is not Ellipsis]
    dots = len(entries) - len(rest)
    rank = leaf.value.dim() if len(rest) == leaf.value.dim() else len(leaf.shape)
    if dots > 1 or len(rest) > rank or (dots == 0 and len(rest) != rank):
        raise DeclarationError(
            f"`{leaf.name}` is declared `{_as_written(declared)}` but the example has shape {leaf.shape}"
        )
    filled: list[Axis] = []
    for entry in entries:
        filled.extend([notation.STATIC] * (rank - len(rest)) if entry is Ellipsis else [entry])
    return filled


def _declared_axis(leaf: Leaf, axis: int, entry: Axis, declared: Any) -> Expression | None:
    if entry is None:
        return notation.parse_expression(unnamed(leaf.name, axis))
    if isinstance(entry, Expression) and entry.names:
        return entry
    number = entry.value_or_none({}) if isinstance(entry, Expression) else entry
    if number not in (notation.STATIC, leaf.value.shape[axis]):
        raise DeclarationError(
            f"`{leaf.name}` is declared `{_as_written(declared)}`, {number} on axis {axis}, "
            f"but the example has shape {leaf.shape}"
        )
    return None


def unnamed(leaf: str, axis: int) -> str:
    """The name of an axis that is dynamic but was not named."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in leaf) + f"_dim{axis}"


def _scalar_expression(leaf: Leaf, declared: Any) -> Expression:
    if isinstance(leaf.value, bool):
        advice = f"leave it out of `{argument('dims')}`"
        raise DeclarationError(f"`{leaf.name}` is {leaf.value}, which becomes part of the file: {advice}")
    entries = notation.parse_axes("" if declared is None else declared, where=leaf.name)
    if not entries or entries == (None,):
        return notation.parse_expression(unnamed(leaf.name, 0).removesuffix("_dim0"))
    if isinstance(entries, tuple) and len(entries) == 1 and isinstance(entries[0], Expression) and entries[0].names:
        return entries[0]
    raise DeclarationError(
        f"`{leaf.name}` is a number and has no axes, but is declared `{_as_written(declared)}`: "
        'write "" or the size that it follows'
    )


def _float_input(leaf: Leaf, declared: Any) -> str:
    if declared not in (None, "", "?", leaf.name, {}, (), []):
        raise DeclarationError(
            f"`{leaf.name}` is a float and follows no dim, but is declared `{_as_written(declared)}`: "
            'write "" to make it an input'
        )
    return leaf.name


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
    first = dict.fromkeys(known, "in the call of make_inputs")
    rest: list[Equation] = []
    for where, expression, size in equations:
        if not expression.is_name:
            rest.append((where, expression, size))
        elif known.setdefault(expression.text, size) != size:
            dim = expression.text
            raise DeclarationError(f"`{dim}` is {known[dim]} {first[dim]} but {size} on {where}")
        first.setdefault(expression.text, f"on {where}")
    while unsolved := [equation for equation in rest if _unknown_dims(equation[1], known)]:
        where, expression, size = min(unsolved, key=lambda equation: len(_unknown_dims(equation[1], known)))
        dim, *others = _unknown_dims(expression, known)
        if others:
            raise DeclarationError(
                f"{where} is `{expression}` = {size}, which leaves {notation.listed([dim, *others])} open: "
                f"name one of them on an axis of its own, or {give_calls()}"
            )
        known[dim] = _solve_one(dim, [e for e in unsolved if _unknown_dims(e[1], known) == [dim]], known)
    for where, expression, size in rest:
        _refuse_contradiction(where, expression, size, known)
    return known


def _unknown_dims(expression: Expression, known: Mapping[str, int]) -> list[str]:
    return [name for name in expression.names if name not in known]


def _solve_one(dim: str, equations: Sequence[Equation], known: Mapping[str, int]) -> int:
    """The smallest size that fits them all, else one that fits the first, and the contradiction is told later.

    Small sizes are tried in order, which is right for `//`, `%` and `min` too; large ones are found by bisection.
    """
    where, expression, size = equations[0]
    candidates = [
        n for n in range(budgets.SIZES_SEARCHED_IN_ORDER) if expression.value_or_none({**known, dim: n}) == size
    ]
    fitting = (n for n in candidates if all(e.value_or_none({**known, dim: n}) == s for _, e, s in equations))
    if candidates:
        return next(fitting, candidates[0])
    large = range(budgets.SIZES_SEARCHED_IN_ORDER, budgets.LARGEST_SIZE)
    index = bisect.bisect_left(large, size, key=lambda n: expression.value_or_none({**known, dim: n}) or 0)
    if index < len(large) and expression.value_or_none({**known, dim: large[index]}) == size:
        return large[index]
    raise DeclarationError(f"{where} is {size} in the example, but no whole `{dim}` gives `{expression}` = {size}")


def _refuse_contradiction(where: str, expression: Expression, size: int, known: Mapping[str, int]) -> None:
    computed = expression.value_or_none(known)
    used = ", ".join(f"{n} = {known[n]}" for n in expression.names)
    if computed is None:
        raise DeclarationError(f"{where} is {size} in the example, but `{expression}` divides by zero with {used}")
    if computed != size:
        raise DeclarationError(f"{where} is {size} in the example, but `{expression}` is {computed} with {used}")


# ---- ranges


def _ranges_of(example: Mapping[str, int], sizes: Mapping[str, Any]) -> dict[str, SizeRange]:
    for name in sizes:
        if name not in example:
            known = f"the shapes only name {notation.listed(example)}" if example else "no axis is dynamic"
            known += notation.did_you_mean(str(name), example)
            raise DeclarationError(f"{argument('sizes')} given for `{name}`, but {known}")
    default = {dim: SizeRange(lo=min(size, 1)) for dim, size in example.items()}  # an empty example: 0 is meant, too
    return {dim: notation.parse_sizes(sizes[dim], dim=dim) if dim in sizes else default[dim] for dim in example}


def _notes_on_ranges(example: Mapping[str, int], ranges: Mapping[str, SizeRange]) -> Iterator[str]:
    """A note for each size of the example that lies outside the declared ones."""
    for dim, size in example.items():
        if size not in ranges[dim]:
            nearest = ranges[dim].nearest(size)
            yield f"the example's `{dim}` = {size} lies outside {ranges[dim]}; {nearest} is used"


def _notes_on_relations(
    example: Mapping[str, int], ranges: Mapping[str, SizeRange], where: Iterable[Condition], start: Mapping[str, int]
) -> Iterator[str]:
    """A note for each relation that the example breaks, unless its ranges say so already."""
    for condition in where:
        if not condition.holds(example) and all(example[dim] in ranges[dim] for dim in condition.names):
            given = ", ".join(f"{dim} = {example[dim]}" for dim in condition.names)
            used = ", ".join(f"{dim} = {start[dim]}" for dim in condition.names)
            yield f"the example's {given} breaks `{condition}`; {used} is used"


def _as_written(declared: Any) -> str:
    if isinstance(declared, (list, tuple)):
        return " ".join("?" if part is None else "..." if part is Ellipsis else str(part) for part in declared)
    return str(declared)


# ---- for less than was declared


def without_dims(spec: Spec, dims: Iterable[str]) -> Spec:
    """The declaration with these dims fixed at their size in the example."""
    fixed = {dim: spec.example[dim] for dim in dims}
    axes = {name: [None if e is None else _with_sizes(e, fixed) for e in row] for name, row in spec.axes.items()}
    scalars = {name: _with_sizes(expression, fixed) for name, expression in spec.scalars.items()}
    known = {name: spec.scalars[name].value(spec.example) for name, left in scalars.items() if not left.names}
    where = [
        notation.any_of([_condition_with_sizes(part, fixed) for part in condition.parts]) for condition in spec.where
    ]
    return replace(
        spec,
        axes={name: tuple(e if e is not None and e.names else None for e in row) for name, row in axes.items()},
        scalars={name: left for name, left in scalars.items() if left.names},
        constants={**spec.constants, **known},
        ranges={dim: declared for dim, declared in spec.ranges.items() if dim not in fixed},
        example={dim: size for dim, size in spec.example.items() if dim not in fixed},
        explicit=spec.explicit - set(fixed),
        where=tuple(left for left in where if left.names),  # else nothing varies in it any more
    )


def _condition_with_sizes(plain: Condition, fixed: Mapping[str, int]) -> Condition:
    return Condition(_with_sizes(plain.left, fixed), plain.relation, _with_sizes(plain.right, fixed))


def _with_sizes(expression: Expression, fixed: Mapping[str, int]) -> Expression:
    text = expression.text
    for dim, size in fixed.items():
        text = re.sub(rf"\b{re.escape(dim)}\b", str(size), text)
    return notation.parse_expression(text)
