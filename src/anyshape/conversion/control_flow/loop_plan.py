"""The roles of all values of a loop, laid out as the tensors that its marks take and give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from torch import Tensor

from anyshape.conversion.control_flow.carried import (
    Gathered,
    Kept,
    Key,
    Last,
    LeafRole,
    Listed,
    Moment,
    Role,
    State,
    as_tensor,
    described,
    is_number,
    shown,
)
from anyshape.conversion.control_flow.collected import Collected, Earlier, LoopError, StackedSteps, parts_of, stacked
from anyshape.conversion.control_flow.loop_trace import Begun, Pairs, memory_of, state
from anyshape.torchkit.capture import expression_of, is_same_number


@dataclass(frozen=True)
class CarriedTensor:
    """One carried tensor: a leaf of a value, and what it is before the first step."""

    key: Key
    place: int
    initial: Tensor
    leaf: LeafRole


@dataclass(frozen=True, eq=False)
class LoopPlan:
    """What is carried and collected, by name; and what all was before the loop."""

    start: Moment
    roles: Mapping[Key, Role]

    # ---- before the body

    @cached_property
    def slots(self) -> list[CarriedTensor]:
        return [slot for key, role in self.roles.items() for slot in self._slots_of(key, role)]

    def _slots_of(self, key: Key, role: Role) -> Iterator[CarriedTensor]:
        if isinstance(role, Listed):
            yield CarriedTensor(key, 0, stacked(self.start[key].parts), role.leaf)
        elif isinstance(role, Gathered):
            if role.reads_last:
                yield CarriedTensor(key, 0, Collected(self.start[key].parts)[-1], LeafRole("tensor"))
        elif isinstance(role, State):
            for place, (leaf, value) in enumerate(zip(role.leaves, self.start[key].leaves, strict=True)):
                if leaf.kind in {"tensor", "number"}:
                    yield CarriedTensor(key, place, as_tensor(value) if leaf.kind == "number" else value, leaf)

    @property
    def growing(self) -> Pairs:
        return [(place, axis) for place, slot in enumerate(self.slots) for axis in sorted(slot.leaf.axes)]

    def require_own_memory(self) -> None:
        """Two tensors that are written to must not be views of one memory: the body would get two separate ones."""
        written = [slot for slot in self.slots if slot.leaf.is_written]
        for place, slot in enumerate(written):
            for other in written[:place]:
                if memory_of(other.initial) == memory_of(slot.initial):
                    names = f"`{shown(other.key)}` and `{shown(slot.key)}`"
                    raise LoopError(f"a loop writes to a tensor that goes by two names, {names}")

    def given(self, begun: Begun) -> dict[Key, Any]:
        """What the body sees in some step; made anew for each pass, since the body may change it."""
        values: dict[Key, Any] = {key: kept.copy() for key, kept in self.start.items() if key not in self.roles}
        pairs = zip(self.slots, begun.carried, strict=True)
        seen = {(slot.key, slot.place): _seen_in_step(slot, tensor) for slot, tensor in pairs}
        for key, role in self.roles.items():
            if isinstance(role, State):
                values[key] = self._state_with(key, role, seen, begun.index)
            elif isinstance(role, Listed):
                state(seen[key, 0].shape[0] >= Collected(self.start[key].parts).length)
                values[key] = Collected([StackedSteps(seen[key, 0])])
            elif isinstance(role, Gathered):
                counted = partial(self._length_before, key, role.per_step, begun.index)
                values[key] = Collected([Earlier(counted, seen.get((key, 0)))])
        return values

    def _length_before(self, key: Key, per_step: int | None, index: Any) -> Any:
        """How much is in a list before a step."""
        if per_step is None:
            raise LoopError(f"a loop asks how much is in the list `{shown(key)}` that it fills")
        return Collected(self.start[key].parts).length + index * per_step

    def _state_with(self, key: Key, role: State, seen: Mapping[tuple[Key, int], Any], step: Any) -> Any:
        """A state with what is seen in place of what was before the loop."""
        start = self.start[key]
        leaves = [
            value + step * leaf.step if leaf.kind == "counted" else seen.get((key, place), value)
            for place, (leaf, value) in enumerate(zip(role.leaves, start.leaves, strict=True))
        ]
        return start.with_leaves(leaves)

    # ---- after the body

    def carried(self, after: Moment) -> list[Any]:
        """What each slot holds for the next step."""
        return [self._left_in(slot, after) for slot in self.slots]

    def _left_in(self, slot: CarriedTensor, after: Moment) -> Any:
        kept, role = after[slot.key], self.roles[slot.key]
        if isinstance(role, Listed):
            return stacked(kept.parts)
        return kept.value[-1] if isinstance(role, Gathered) else kept.leaves[slot.place]

    def collected(self, after: Moment) -> list[Tensor]:
        """What a step adds to the lists, of each list what is put in front, then what is put behind; and what is read
        after the loop: of each step, since there is nothing to start from.
        """
        found: list[Tensor] = []
        for key, role in self.roles.items():
            if isinstance(role, Gathered):
                found += [_block_of_step(key, parts) for parts in _added_parts(key, after[key]) if parts]
            elif isinstance(role, Last):
                found += [as_tensor(leaf) if is_number(leaf) else leaf for leaf in _collected_leaves(key, after)]
        return found

    # ---- after the loop

    def results(
        self, count: Any, after: Moment, carried: Sequence[Tensor], collected: Sequence[Tensor]
    ) -> dict[Key, Any]:
        values: dict[Key, Any] = {key: kept.value for key, kept in self.start.items() if key not in self.roles}
        pairs = zip(self.slots, carried, strict=True)
        seen = {(slot.key, slot.place): _seen_after_loop(slot, tensor) for slot, tensor in pairs}
        blocks = iter(collected)
        for key, role in self.roles.items():
            if isinstance(role, State):
                values[key] = _back_in(self.start[key], self._state_with(key, role, seen, count), after[key])
            elif isinstance(role, Last):
                leaves = [_last_value(leaf, blocks) for leaf in after[key].leaves]
                values[key] = after[key].with_leaves(leaves)
            elif isinstance(role, Listed):
                values[key] = self._put_back(key, [StackedSteps(seen[key, 0])])
            else:
                values[key] = self._put_back(key, self._parts_after_loop(key, after[key], blocks))
        return values

    def _parts_after_loop(self, key: Key, after: Kept, blocks: Iterator[Tensor]) -> list[Any]:
        front, behind = _added_parts(key, after)
        before = [StackedSteps(_in_a_row(front, next(blocks).flip(0)))] if front else []
        later = [StackedSteps(_in_a_row(behind, next(blocks)))] if behind else []
        return [*before, *self.start[key].parts, *later]

    def _put_back(self, key: Key, parts: list[Any]) -> Collected:
        """Whoever else holds the list finds the same in it."""
        list.__setitem__(self.start[key].value, slice(None), parts)
        return Collected(parts)


def _seen_in_step(slot: CarriedTensor, tensor: Tensor) -> Any:
    if slot.leaf.kind == "number":
        return tensor.item()
    # each path through the body writes to one of its own
    return tensor.clone() if slot.leaf.is_written else tensor


def _seen_after_loop(slot: CarriedTensor, tensor: Tensor) -> Any:
    if slot.leaf.kind == "number":
        return tensor.item()
    if slot.leaf.is_written:
        return slot.initial.copy_(tensor)  # so that its views and other names see it
    return tensor


def _back_in(start: Kept, value: Any, after: Kept) -> Any:
    """A list or dict that the body has changed in place is the same object after the loop."""
    if isinstance(start.value, list) and isinstance(after.value, list):
        start.value[:] = value
        return start.value
    if isinstance(start.value, dict):
        start.value.update(value)
        return start.value
    return value


def _collected_leaves(key: Key, after: Moment) -> list[Any]:
    if key not in after:
        raise LoopError(f"a loop does not bind `{shown(key)}` in every step")
    return [leaf for leaf in after[key].leaves if _is_collected(leaf)]


def _is_collected(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) or is_number(leaf)


def _last_value(leaf: Any, blocks: Iterator[Tensor]) -> Any:
    """The value of the last step; what is neither a tensor nor a number is the same in all."""
    if not _is_collected(leaf):
        return leaf
    last = next(blocks)[-1]
    return last.item() if is_number(leaf) else last


def _added_parts(key: Key, after: Kept) -> tuple[list[Any], list[Any]]:
    """What a step has put before and behind what was in a list."""
    parts = parts_of(after.value) if isinstance(after.value, list) else []
    place = next((at for at, part in enumerate(parts) if isinstance(part, Earlier)), None)
    if place is None:
        raise LoopError(f"a loop replaces the list `{shown(key)}` that it fills")
    return parts[:place], parts[place + 1 :]


def _block_of_step(key: Key, parts: Sequence[Any]) -> Tensor:
    for part in parts:
        if not isinstance(part, Tensor | StackedSteps):
            raise LoopError(f"a loop collects {described(part)} in `{shown(key)}`: only tensors can be collected")
    return parts[0] if _is_single(parts) else stacked(parts)


def _is_single(parts: Sequence[Any]) -> bool:
    return len(parts) == 1 and isinstance(parts[0], Tensor)


def _in_a_row(parts: Sequence[Any], steps: Tensor) -> Tensor:
    return steps if _is_single(parts) else steps.flatten(0, 1)


def tell_growth(
    plan: LoopPlan, count: Any, given: Sequence[Any], after: Sequence[Any], carried: Sequence[Tensor]
) -> None:
    """Where an axis grows by the same in each step, torch is told how long it is in the end."""
    for slot, seen, left, result in zip(plan.slots, given, after, carried, strict=True):
        for axis in slot.leaf.axes:
            step = left.shape[axis] - seen.shape[axis]
            if not expression_of(step).free_symbols or is_same_number(step, 0):
                state(result.shape[axis] == slot.initial.shape[axis] + step * count)
