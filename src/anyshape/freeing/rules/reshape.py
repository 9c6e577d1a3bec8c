"""Reshape, Flatten, Squeeze and Transpose: the same elements in other axes.

A reshape is read as a regrouping of factors: which of them make up each new axis. A factor of size 1, as a batch of 1
is, could go to either side of a boundary: every reading is given, the likeliest first. Numbers side by side are one
number, since any regrouping of them is right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from anyshape.freeing.walk import Rule, Shapes, Walk, axes_of
from anyshape.onnxfile.graph import attribute
from anyshape.sizes import budgets
from anyshape.sizes.expressions import ONE, Factors, Shape, Size, is_number, number, product, spelled

Atom = tuple[Size, int]
"""A factor and its size in the file."""
Reading = tuple[Factors, ...]


def reshape(walk: Walk, node: ir.Node) -> Shapes:
    data = node.inputs[0]
    shape = walk.shape(data)
    if data is None or shape is None or not any(walk.is_free(size) for size in shape):
        return None
    target, atoms = _target_in_file(walk, node, shape), _atoms(walk, data)
    if target is None or atoms is None:
        raise walk.pinned(node, "its target depends on the data", product(shape))
    found = readings(atoms, target)
    moved = _moved_axes(walk, shape, target)
    if found and moved and walk.chooser.choose((False, True)):
        return _transpose_instead(walk, node, data, moved)
    if not found:
        why = f"{_in_brackets(shape)} cannot become {list(target)} at other sizes"
        raise walk.pinned(node, why, product(s for s in shape if walk.is_free(s)))
    written = walk.numbers(node.inputs[1])
    reading = walk.chooser.choose(_readings_that_agree(walk, found, written))
    sizes = tuple(product(axis) for axis in reading)
    walk.factors.set(node.outputs[0], reading)
    _rewrite_target(walk, node, shape, sizes, written)
    return [sizes]


def _moved_axes(walk: Walk, shape: Shape, target: Sequence[int]) -> list[int] | None:
    """The order of axes, where one that is free and was 1 in the file went elsewhere: a Reshape was as good there."""
    sizes = [walk.at_file(size) for size in shape]
    free = [axis for axis, size in enumerate(shape) if walk.is_free(size) and sizes[axis] == 1]
    if len(free) != 1 or len(shape) != len(target) or sizes == list(target):
        return None
    rest = [axis for axis in range(len(shape)) if axis != free[0]]
    for place in range(len(shape)):
        order = [*rest[:place], free[0], *rest[place:]]
        if [sizes[axis] for axis in order] == list(target) and sizes.count(1) == 1:
            return order
    return None


def _transpose_instead(walk: Walk, node: ir.Node, data: ir.Value, order: Sequence[int]) -> Shapes:
    shape = tuple((walk.shape(data) or ())[axis] for axis in order)
    factors = walk.factors.of(data)
    value = walk.builder.node("Transpose", [data], shape, dtype=data.dtype, perm=list(order))
    walk.factors.set(value, [factors[axis] for axis in order])
    walk.factors.set(node.outputs[0], [factors[axis] for axis in order])
    walk.replace(node, 0, value, f"axes were moved in the order {list(order)}")
    _rewrite_target(walk, node, shape, shape, walk.numbers(node.inputs[1]))
    return [shape]


def _target_in_file(walk: Walk, node: ir.Node, shape: Shape) -> tuple[int, ...] | None:
    """The output's sizes in the file: observed, or from the constant with its 0 and -1 resolved."""
    seen = walk.observed(node.outputs[0])
    written = walk.numbers(node.inputs[1])
    if seen is not None or written is None:
        return seen
    sizes = [walk.at_file(size) for size in shape]
    entries = [walk.at_file(size) for size in written]
    if any(n is None for n in (*sizes, *entries)):
        return None
    resolved = [sizes[k] if n == 0 and k < len(sizes) else n for k, n in enumerate(entries)]
    known = math.prod(n for n in resolved if n is not None and n > 0)
    whole = math.prod(n for n in sizes if n is not None)
    return tuple(int(n) if n is not None and n >= 0 else whole // max(known, 1) for n in resolved)


def _atoms(walk: Walk, data: ir.Value) -> list[Atom] | None:
    """The factors with their sizes; one that depends on the data has the size that it had when observed."""
    seen = walk.observed(data) or ()
    atoms: list[Atom] = []
    for axis, factors in enumerate(walk.factors.of(data)):
        for size in factors:
            n = walk.at_file(size)
            if n is None and len(factors) == 1 and axis < len(seen):
                n = seen[axis]
            if n is None:
                return None
            atoms.append((size, n))
    return atoms


def _readings_that_agree(walk: Walk, found: list[Reading], written: Shape | None) -> list[Reading]:
    """Where the file computes the target from sizes, only the readings that say the same."""

    def agrees(reading: Reading) -> bool:
        pairs = zip(reading, written or (), strict=False)
        return all(product(axis) == entry for axis, entry in pairs if walk.is_free(entry))

    return [reading for reading in found if agrees(reading)] or found


def _rewrite_target(walk: Walk, node: ir.Node, shape: Shape, sizes: Shape, written: Shape | None) -> None:
    copies = not attribute(node, "allowzero", 0)
    if written is not None and len(written) == len(sizes) and _says_so(written, shape, sizes, copies=copies):
        return
    entries: list[Size] = []
    for axis, size in enumerate(sizes):
        same = axis < len(shape) and shape[axis] == size
        entries.append(size if is_number(size) else number(0) if same else None)
    rest = [axis for axis, entry in enumerate(entries) if entry is None]
    for axis in rest:
        entries[axis] = sizes[axis]
    unreadable = [axis for axis in rest if walk.is_unknown(sizes[axis])]
    if rest:
        entries[(unreadable or rest)[0]] = number(-1)
    node.attributes.pop("allowzero", None)
    before = "computed" if written is None else f"[{', '.join(map(spelled, written))}]"
    after = ", ".join(map(spelled, entries))
    walk.replace(node, 1, walk.builder.vector(entries), f"target {before} became [{after}]")


def _says_so(written: Shape, shape: Shape, sizes: Shape, *, copies: bool) -> bool:
    """Whether the target gives these sizes as it stands."""
    for axis, (entry, size) in enumerate(zip(written, sizes, strict=True)):
        if entry == 0 and copies:
            if axis >= len(shape) or shape[axis] != size:
                return False
        elif entry not in (-1, size):
            return False
    return True


def flatten(walk: Walk, node: ir.Node) -> Shapes:
    data = node.inputs[0]
    shape = walk.shape(data)
    if data is None or shape is None:
        return None
    axis = int(attribute(node, "axis", 1))
    axis = axis + len(shape) if axis < 0 else axis
    factors = walk.factors.of(data)
    halves = [tuple(f for part in half for f in part) for half in (factors[:axis], factors[axis:])]
    walk.factors.set(node.outputs[0], [half or (number(1),) for half in halves])
    return [tuple(product(half) for half in halves)]


def squeeze(walk: Walk, node: ir.Node) -> Shapes:
    shape = walk.shape(node.inputs[0])
    seen = walk.observed(node.outputs[0])
    if shape is None:
        return None
    named = axes_of(walk, node, len(shape))
    dropped = named if named is not None else [axis for axis, size in enumerate(shape) if walk.at_file(size) == 1]
    for axis in dropped:
        if walk.is_free(shape[axis]):
            raise walk.pinned(node, f"it drops axis {axis}, which is `{spelled(shape[axis])}`", shape[axis])
    if seen is not None and len(seen) != len(shape) - len(dropped):
        return None
    kept = [axis for axis in range(len(shape)) if axis not in dropped]
    if node.inputs[0] is not None:
        walk.factors.set(node.outputs[0], [walk.factors.of(node.inputs[0])[axis] for axis in kept])
    return [tuple(shape[axis] for axis in kept)]


def unsqueeze(walk: Walk, node: ir.Node) -> Shapes:
    shape = walk.shape(node.inputs[0])
    added = None if shape is None else attribute(node, "axes")
    if shape is None or node.inputs[0] is None:
        return None
    if added is None and len(node.inputs) > 1:
        added = walk.constant(node.inputs[1])
    if added is None:
        return None
    rank = len(shape) + len(added)
    places = {int(axis) % rank for axis in added}
    factors = iter(walk.factors.of(node.inputs[0]))
    rows = [(number(1),) if axis in places else next(factors) for axis in range(rank)]
    walk.factors.set(node.outputs[0], rows)
    return [tuple(product(row) for row in rows)]


def transpose(walk: Walk, node: ir.Node) -> Shapes:
    data = node.inputs[0]
    shape = walk.shape(data)
    if data is None or shape is None:
        return None
    order = attribute(node, "perm") or list(range(len(shape)))[::-1]
    factors = walk.factors.of(data)
    walk.factors.set(node.outputs[0], [factors[axis] for axis in order])
    return [tuple(shape[axis] for axis in order)]


def _in_brackets(shape: Sequence[Size]) -> str:
    return "[" + ", ".join(map(spelled, shape)) + "]"


RULES: dict[str, Rule] = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
}


# ---- the ways in which factors make up axes


def readings(factors: Sequence[Atom], target: Sequence[int]) -> list[Reading]:
    """Every way in which the factors, in their order, make up axes of these sizes; none where there is no way."""
    atoms = _without_ones(factors)
    if math.prod(n for _, n in atoms) != math.prod(target) or 0 in target:
        return []
    search = _RegroupingSearch(tuple(target))
    runs = {n for size, n in atoms if is_number(size)}
    found = dict.fromkeys(search.fill(tuple(atoms), 0))
    return sorted(found, key=lambda reading: sum(_unlikely(axis, runs) for axis in reading))


def _without_ones(factors: Sequence[Atom]) -> list[Atom]:
    """Without ones, and with neighbouring numbers as one."""
    atoms: list[Atom] = []
    for size, n in factors:
        if is_number(size) and n == 1:
            continue
        if is_number(size) and atoms and is_number(atoms[-1][0]):
            atoms[-1] = (atoms[-1][0] * size, atoms[-1][1] * n)
        else:
            atoms.append((size, n))
    return atoms


def _unlikely(axis: Factors, runs: set[int]) -> float:
    """Alone is likeliest; then beside a part of a number (heads), other dims, a whole number (features)."""
    free = [size for size in axis if not is_number(size)]
    numbers = product(size for size in axis if is_number(size))
    if not free or (len(free) == 1 and numbers == 1):
        return 0
    if numbers == 1:
        return 1
    return 2 if int(numbers) in runs else 0.5


@dataclass
class _RegroupingSearch:
    target: tuple[int, ...]
    steps: int = 0
    found: int = 0

    def fill(self, atoms: tuple[Atom, ...], axis: int) -> Iterator[Reading]:
        """Readings of the axes from this one on."""
        self.steps += 1
        if self.steps > budgets.MOST_STEPS_TO_REGROUP or self.found > budgets.MOST_READINGS_OF_A_RESHAPE:
            return
        if axis == len(self.target):
            if not atoms:
                self.found += 1
                yield ()
            return
        for own, rest in self._made_of(atoms, self.target[axis], ()):
            for others in self.fill(rest, axis + 1):
                yield (own or (ONE,), *others)

    def _made_of(self, atoms: tuple[Atom, ...], need: int, own: Factors) -> Iterator[tuple[Factors, tuple[Atom, ...]]]:
        """What the next axis can be made of, and what is left."""
        self.steps += 1
        if self.steps > budgets.MOST_STEPS_TO_REGROUP:
            return
        if need == 1:
            alone = not own
            if not alone:
                yield own, atoms
            if atoms and atoms[0][1] == 1:
                yield from self._made_of(atoms[1:], 1, (*own, atoms[0][0]))
            if alone:
                yield own, atoms
            return
        if not atoms:
            return
        (size, n), rest = atoms[0], atoms[1:]
        if need % n == 0:
            yield from self._made_of(rest, need // n, (*own, size))
        elif n % need == 0:
            for first, second in _two_parts(size, n, need):
                yield (*own, first[0]), (second, *rest)


def _two_parts(size: Size, n: int, need: int) -> Iterator[tuple[Atom, Atom]]:
    """A factor that goes to two axes: which of them follows the dim cannot be seen."""
    other = n // need
    if is_number(size):
        yield (number(need), need), (number(other), other)
        return
    yield (size / other, need), (number(other), other)
    yield (number(need), need), (size / need, other)
