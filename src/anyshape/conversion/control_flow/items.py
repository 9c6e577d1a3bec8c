"""What a loop goes over, where there is no telling how often: numbers, slices of tensors, several of these at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from anyshape.conversion.control_flow.carried import Kept
from anyshape.conversion.control_flow.collected import Collected, LoopError, StackedSteps, list_of_steps, stacked
from anyshape.conversion.control_flow.loop_trace import is_same_shape, is_varying, state
from anyshape.conversion.operators.held_numbers import Held
from anyshape.conversion.operators.repair import Answer
from anyshape.sizes import budgets
from anyshape.torchkit.capture import expression_of, is_same_number


class _NoPlainItems:
    """What Python cannot go through by itself, since the size that counts it is not known."""

    def __iter__(self) -> Iterator[Any]:
        what = "what a varying size counts is gone through by something else than a `for` loop or a list comprehension"
        raise LoopError(what)


@dataclass(frozen=True)
class Counted:
    """`range(start, start + step * count, step)`."""

    start: Any
    step: Any
    count: Any
    sequences: tuple[Tensor, ...] = ()

    def item(self, index: Any, slices: Iterator[Tensor]) -> Any:
        del slices
        value = self.start + index * self.step
        end = self.start + self.count * self.step
        state(value < end if self.step > 0 else value > end)
        return value

    def first(self) -> Any:
        return self.start

    def reversed(self) -> Counted:
        return Counted(self.start + (self.count - 1) * self.step, -self.step, self.count)

    def part(self, start: Any, count: Any) -> Counted:
        return Counted(self.start + start * self.step, self.step, count)

    def __iter__(self) -> Iterator[int]:
        """Outside of a loop that is kept: as Python does it, which makes the size a plain number."""
        return iter(range(self.start, self.start + self.step * self.count, self.step))

    def __len__(self) -> int:
        return int(self.count)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [*self][index]
        from_end = isinstance(index, int) and index < 0
        return self.start + (self.count + index if from_end else index) * self.step


@dataclass(frozen=True)
class Slices(_NoPlainItems):
    """The slices of a tensor along its first axis."""

    tensor: Tensor

    @property
    def count(self) -> Any:
        return self.tensor.shape[0]

    @property
    def sequences(self) -> tuple[Tensor, ...]:
        return (self.tensor,)

    def item(self, index: Any, slices: Iterator[Tensor]) -> Any:
        del index
        return next(slices)

    def first(self) -> Any:
        return self.tensor[0]

    def reversed(self) -> Slices:
        return Slices(self.tensor.flip(0))

    def part(self, start: Any, count: Any) -> Slices:
        if is_same_number(start + count, self.count):
            return self if is_same_number(start, 0) else Slices(self.tensor[start:])
        return Slices(self.tensor[start : start + count])


@dataclass(frozen=True)
class Zipped(_NoPlainItems):
    """An item of each at once; all go on equally long."""

    parts: tuple[Any, ...]

    @property
    def count(self) -> Any:
        return self.parts[0].count

    @property
    def sequences(self) -> tuple[Tensor, ...]:
        return tuple(tensor for part in self.parts for tensor in part.sequences)

    def item(self, index: Any, slices: Iterator[Tensor]) -> Any:
        return tuple(part.item(index, slices) for part in self.parts)

    def first(self) -> Any:
        return tuple(part.first() for part in self.parts)

    def reversed(self) -> Zipped:
        return Zipped(tuple(part.reversed() for part in self.parts))

    def part(self, start: Any, count: Any) -> Zipped:
        return Zipped(tuple(part.part(start, count) for part in self.parts))


Items = Counted | Slices | Zipped


@dataclass(frozen=True)
class Single:
    """One item, for which the body runs as in Python."""

    item: Any
    count = 1


@dataclass(frozen=True)
class Row(_NoPlainItems):
    """Several of these one behind the other, which no single body serves: all pieces of a tensor and a shorter one."""

    parts: tuple[Items | Single, ...]

    @property
    def count(self) -> Any:
        return sum(part.count for part in self.parts)

    def reversed(self) -> Row:
        return Row(tuple(part if isinstance(part, Single) else part.reversed() for part in reversed(self.parts)))

    def part(self, start: Any, count: Any) -> Items | Single:
        for place, part in enumerate(self.parts):
            before = sum(one.count for one in self.parts[:place])
            if is_same_number(before, start) and is_same_number(part.count, count):
                return part
        raise LoopError("a loop goes at once over lists that are cut at different places")

    def beside(self, others: Sequence[Any]) -> Row:
        """With what lies at the same places of others, and of itself, in their order."""
        if not all(is_same_number(one.count, self.count) for one in others):
            raise LoopError("a loop goes at once over pieces of a tensor and over something of another length")
        found: list[Items | Single] = []
        for place, part in enumerate(self.parts):
            start = sum(one.count for one in self.parts[:place])
            cut = [one.part(start, part.count) for one in others]
            if isinstance(part, Single):
                found.append(Single(tuple(one.item if isinstance(one, Single) else one.first() for one in cut)))
            else:
                found.append(Zipped(tuple(cut)))
        return Row(tuple(found))


def items_of(value: Any) -> Items | Row | None:
    """What a loop over a value goes over, where its length is symbolic; None where Python can go through it."""
    if isinstance(value, Items | Row):
        return value
    if isinstance(value, Tensor) and value.ndim and is_varying(value.shape[0]):
        return Slices(value)
    steps = list_of_steps(value)
    return None if steps is None else _items_of_list(steps.parts)


def _items_of_list(parts: Sequence[Any]) -> Items | Row:
    elements = [part.tensor[0] if isinstance(part, StackedSteps) else part for part in parts]
    tensors = [one for one in elements if isinstance(one, Tensor)]
    if all(is_same_shape(one, tensors[0]) for one in tensors):
        return Slices(stacked(parts))
    return Row(tuple(Slices(part.tensor) if isinstance(part, StackedSteps) else Single(part) for part in parts))


# ---- builtins that give such items, as the rewritten code calls them


def _range(genuine: Any, *bounds: Any) -> Any:
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if is_varying(step):
        return _range_in_strides(genuine, start, stop, step)
    if not (is_varying(start) or is_varying(stop)) or not isinstance(step, int) or not step:
        return genuine(*bounds)
    span = (stop - start) if step > 0 else (start - stop)
    count = span if abs(step) == 1 else (span + abs(step) - 1) // abs(step)
    # an axis has at least one place: one less is not below zero
    is_near = (isinstance(start, int) and step == 1 and start in (0, 1)) or (step < 0 and is_same_number(stop, -1))
    return Counted(start, step, count if is_near else torch.sym_max(count, 0))


def _range_in_strides(genuine: Any, start: Any, stop: Any, step: Any) -> Any:
    """`range(0, n, n)` has one step whatever n is; `range(0, n, n // 2)` has two or three."""
    times = sympy.cancel(expression_of(stop - start) / expression_of(step))
    if isinstance(times, sympy.Rational):
        return tuple(start + index * step for index in range(math.ceil(times)))
    if step > 0:
        return Counted(start, step, torch.sym_max((stop - start + step - 1) // step, 0))
    return genuine(start, stop, step)


def _enumerate(genuine: Any, values: Any, start: Any = 0) -> Any:
    items = items_of(values)
    return genuine(values, start) if items is None else _items_side_by_side([Counted(start, 1, items.count), items])


def _zip(genuine: Any, *values: Any, strict: bool = False) -> Any:
    found = [items_of(value) for value in values]
    items = [one for one in found if one is not None]
    if not items or len(items) < len(found):
        return genuine(*values, strict=strict)
    return _items_side_by_side(items)


def _items_side_by_side(items: Sequence[Items | Row]) -> Zipped | Row:
    row = next((one for one in items if isinstance(one, Row)), None)
    if row is not None:
        return row.beside(items)
    count = _shortest([one.count for one in items])
    return Zipped(tuple(one.part(0, count) for one in items))


def _shortest(counts: Sequence[Any]) -> Any:
    count, *others = counts
    for other in others:
        count = count if is_same_number(count, other) else torch.sym_min(count, other)
    return count


def _reversed_items(genuine: Any, values: Any) -> Any:
    steps = list_of_steps(values)
    items = items_of(values) if steps is None else steps  # no `or`: whether a list is empty would be asked of the trace
    return genuine(values) if items is None else items.reversed()


def _list_or_tuple(genuine: Any, *values: Any) -> Any:
    items = items_of(values[0]) if len(values) == 1 else None
    if items is None:
        return genuine(*values)
    steps = list_of_steps(values[0])
    if steps is not None:
        return steps
    return Collected([StackedSteps(items.tensor)]) if isinstance(items, Slices) else items


def _sum(genuine: Any, values: Any, /, start: Any = 0) -> Any:
    items = items_of(values)
    if not isinstance(items, Slices):
        return genuine(values, start)
    total = items.tensor.sum(0)
    return total if isinstance(start, int) and start == 0 else start + total


def _len(genuine: Any, values: Any) -> Any:
    steps = list_of_steps(values)
    if steps is not None:
        return steps.length
    items = items_of(values)
    return genuine(values) if items is None else items.count


STAND_INS: dict[str, Callable[..., Any]] = {
    "range": _range, "enumerate": _enumerate, "zip": _zip, "reversed": _reversed_items, "list": _list_or_tuple,
    "tuple": _list_or_tuple, "sum": _sum, "len": _len,
}  # fmt: skip

# ---- the places at which something holds: `for expert in is_hit.nonzero()`

# Where a step must know its place as a plain number (`self.experts[f"expert_{place}"]`) there is no body that serves
# all of them. The places are among as many as the vector is long, so the steps of all are taken, and what a step has
# changed counts only where its place holds.

_VECTORS: Any = WeakIdKeyDictionary()
"""Tensors of places -> the vector that holds at them."""
_nonzero: Callable[..., Any] = torch.nonzero  # before it is answered by others


@dataclass(frozen=True)
class PossibleStep:
    """One step: the literal that it is given, and whether it is to be taken."""

    item: Tensor
    holds: Tensor

    def chosen(self, before: Kept, copies: Sequence[Any], after: Kept, name: str) -> Any:
        """A value as the step has left it, or as it was."""
        same = [now is was for now, was in zip(after.leaves, before.leaves, strict=False)]
        if after.structure == before.structure and all(same) and after.versions == before.versions:
            return after.value
        if after.structure != before.structure or not all(map(_are_alike, after.leaves, copies)):
            raise LoopError(f"`{name}` depends on which places hold, and is no tensor of one shape")
        leaves = [
            torch.where(self.holds, now, was) if isinstance(now, Tensor) else now
            for now, was in zip(after.leaves, copies, strict=True)
        ]
        return after.with_leaves(leaves)


def copied(kept: Kept) -> Sequence[Any]:
    """The leaves of a value, safe from writes."""
    return [leaf.clone() if isinstance(leaf, Tensor) else leaf for leaf in kept.leaves]


def _are_alike(now: Any, was: Any) -> bool:
    if isinstance(now, Tensor) and isinstance(was, Tensor):
        return now.dtype == was.dtype and is_same_shape(now, was)
    return not isinstance(now, Tensor) and not isinstance(was, Tensor) and now is was


def all_places(items: Items) -> Sequence[PossibleStep] | None:
    """The steps that a loop may take; None where that is not known, or too many."""
    vector = _VECTORS.get(items.tensor) if isinstance(items, Slices) else None
    if vector is None or vector.shape[0] > budgets.MOST_ITEMS_UNROLLED:
        return None
    return [PossibleStep(torch.tensor([place]), vector[place] != 0) for place in range(vector.shape[0])]


def _noted_places(input: Tensor, **options: Any) -> Any:  # noqa: A002
    if options or input.ndim != 1 or not isinstance(input.shape[0], int):
        return NotImplemented
    found = _nonzero(input)
    _VECTORS[found] = input
    return found


def _literal_formatted(number: Tensor, form: str) -> Any:
    """`f"{place}"` of a literal, which torch's stand-in for a tensor would write as what it is."""
    value = Held().value_of(number)
    return NotImplemented if value is None else format(value, form)


ANSWERS: dict[tuple[Any, str], Answer] = {
    (torch, "nonzero"): _noted_places,
    (Tensor, "nonzero"): _noted_places,
    (Tensor, "__format__"): _literal_formatted,
}
