"""What one step of a loop hands to the next: found by comparing what a pass was given with what it left, and laid out
as the tensors that the marks of the loop take and give.

A value that a body can change has one of these roles:

State      a value that a step reads and changes: tensors, and numbers as tensors without axes
Gathered   a list that grows
Listed     a list that grows, and that a step reads: one tensor, which grows
Last       a name that is bound in the loop and read after it
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import SymFloat, SymInt, Tensor, nn
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from anyshape.conversion.control_flow.collected import Collected, Earlier, LoopError, StackedSteps, parts_of, stacked
from anyshape.conversion.control_flow.loop_trace import Begun, Pairs, end, is_varying, memory_of, state
from anyshape.torchkit.capture import expression_of, is_same_number
from anyshape.torchkit.private_names import pytree

# ---- what a body can change, at one moment: names of its function, and attributes of the model's modules

# Local names cannot be set from outside. The rewritten loop takes what is `given` to it at the start of each pass, and
# at its end.

Key = str | tuple[int, str]
"""A local name; or a container of attributes, by its place among all, and the attribute's name."""
_TORCHS = frozenset(vars(nn.Module()))


@dataclass(frozen=True, eq=False)
class Kept:
    """A value at one moment: what is in it, and how often its tensors had been written to."""

    value: Any
    leaves: Sequence[Any]
    structure: Any
    """None for a value that contains no others."""
    versions: Sequence[int]
    parts: Sequence[Any] = ()
    """Of a list: what is in it."""

    @classmethod
    def of(cls, value: Any) -> Kept:
        is_container = isinstance(value, list | tuple | dict | deque) and not isinstance(value, Collected)
        leaves, structure = pytree.tree_flatten(value) if is_container else ([value], None)
        # torch counts the writes to a tensor, and to whatever shares its memory
        versions = [one._version if isinstance(one, Tensor) else 0 for one in leaves]
        return cls(value, leaves, structure, versions, parts_of(value) if isinstance(value, list) else ())

    def with_leaves(self, leaves: Sequence[Any]) -> Any:
        """The like of it with other leaves; its lists and dicts are new ones."""
        return leaves[0] if self.structure is None else pytree.tree_unflatten(leaves, self.structure)

    def copy(self) -> Any:
        if isinstance(self.value, Collected):
            return self.value.copy()
        return self.with_leaves(self.leaves)


Moment = Mapping[Key, Kept]


class LoopScope:
    """The names and attributes that the body of one loop can change."""

    def __init__(
        self, bound: Callable[[], Mapping[str, Any]], names: Iterable[str], modules: Iterable[nn.Module]
    ) -> None:
        """`bound` gives the local names as they are bound at the moment."""
        self._bound = bound
        self._names = sorted({*names})
        self._attributes = [one for module in modules for one in (vars(module), vars(module)["_buffers"])]
        self.given: dict[str, Any] = {}

    def read(self) -> Moment:
        names = self._bound()
        found: dict[Key, Kept] = {name: Kept.of(names[name]) for name in self._names if name in names}
        for place, attributes in enumerate(self._attributes):
            found |= {(place, name): Kept.of(value) for name, value in attributes.items() if name not in _TORCHS}
        return found

    def write(self, values: Mapping[Key, Any]) -> Moment:
        """The moment at which all have these values. Attributes that are not among them go; names stay, and follow only
        when a step begins.
        """
        self.given = {key: value for key, value in values.items() if isinstance(key, str)}
        for place, attributes in enumerate(self._attributes):
            for name in [name for name in attributes if name not in _TORCHS and (place, name) not in values]:
                del attributes[name]
        for key, value in values.items():
            if isinstance(key, tuple) and self._attributes[key[0]].get(key[1]) is not value:
                self._attributes[key[0]][key[1]] = value
        return {key: Kept.of(value) for key, value in values.items()}


# ---- roles


@dataclass(frozen=True)
class LeafRole:
    """One value in a state."""

    kind: str = "fixed"
    """`fixed`, `tensor`, `counted` (a number that grows by the same in each step) or `number`."""
    is_written: bool = False
    """Whether the tensor itself is written to."""
    axes: frozenset[int] = frozenset()
    """Those whose size changes from step to step."""
    step: Any = 0


@dataclass(frozen=True)
class State:
    leaves: tuple[LeafRole, ...]


@dataclass(frozen=True)
class Gathered:
    per_step: int | None
    """How many values a step adds; None if that varies."""
    like: Any = field(default=None, compare=False)
    """One of them."""
    reads_last: bool = False


@dataclass(frozen=True)
class Listed:
    like: Any = field(default=None, compare=False)
    """One of the values that a step adds: there may be none before the loop."""
    leaf: LeafRole = LeafRole("tensor", axes=frozenset({0}))


@dataclass(frozen=True)
class Last:
    pass


Role = State | Gathered | Listed | Last


# ---- roles found


@dataclass(frozen=True)
class Peel:
    """The first step differs from the others and has to be taken before the loop."""

    reason: str
    failure: Exception | None = None


def _role_after(role: Role | None, before: Kept, after: Kept | None) -> Role | Peel | None:
    """The role of a value after a pass, which may have had one before; None where the pass leaves it alone."""
    if after is None:
        return Peel("bound in one step and not in the next")
    if role is None:
        return found_role(before, after)
    if isinstance(role, Gathered) and not _adds_as_foreseen(role, after):
        return Listed(role.like)
    return _refined_state(role, before, after) if isinstance(role, State) else role


def _adds_as_foreseen(role: Gathered, after: Kept) -> bool:
    others = [part for part in after.parts if not isinstance(part, Earlier)]
    return bool(others) and (role.per_step is None or is_same_number(Collected(others).length, role.per_step))


def found_role(given: Kept, after: Kept) -> Role | Peel | None:
    """The role of a value that has none yet; None where a pass leaves it alone."""
    if isinstance(given.value, list) and isinstance(after.value, list):
        added = _parts_added(given.parts, after.parts)
        if added:
            count, like = Collected(added).length, added[0]
            element = like.tensor[0] if isinstance(like, StackedSteps) else like
            if isinstance(count, SymInt) and free_unbacked_symbols(count):
                return Listed(element)  # another number in each step
            return Gathered(None if is_varying(count) else int(count), element)
    state = State(tuple(LeafRole() for _ in given.leaves))
    refined = _refined_state(state, given, after)
    return None if refined is state else refined


def _parts_added(before: Sequence[Any], after: Sequence[Any]) -> Sequence[Any]:
    """What has come to a list, if all that was there is still there, in a row at the start or at the end."""
    count = len(after) - len(before)
    if count > 0 and all(left is right for left, right in zip(before, after, strict=False)):
        return after[len(before) :]
    if count > 0 and all(left is right for left, right in zip(before, after[count:], strict=True)):
        return after[:count]
    return ()


def _refined_state(state: State, given: Kept, after: Kept) -> State | Peel:
    """The same object where the pass was as foreseen."""
    if given.structure != after.structure:
        return Peel(_difference(given.value, after.value))
    leaves = []
    for leaf, before, version, now in zip(state.leaves, given.leaves, given.versions, after.leaves, strict=True):
        found = _refined_leaf(leaf, before, version, Kept.of(now))
        if isinstance(found, Peel):
            return found
        leaves.append(found)
    same = all(old is new for old, new in zip(state.leaves, leaves, strict=True))
    return state if same else State(tuple(leaves))


def _refined_leaf(leaf: LeafRole, before: Any, version: int, after: Kept) -> LeafRole | Peel:
    now = after.value
    if isinstance(before, Tensor) and isinstance(now, Tensor):
        return _refined_tensor(leaf, before, version, after)
    if is_number(before) and is_number(now) and _is_float(before) == _is_float(now):
        return _refined_number(leaf, before, now)
    same = now is before or (isinstance(now, str | bool) and type(now) is type(before) and now == before)
    return leaf if same else Peel(_difference(before, now))


def _refined_tensor(leaf: LeafRole, before: Tensor, version: int, after: Kept) -> LeafRole | Peel:
    now = after.value
    if now is before:
        is_written = after.versions[0] != version
        return leaf if leaf.is_written or not is_written else replace(leaf, kind="tensor", is_written=True)
    if now.ndim != before.ndim or now.dtype != before.dtype:
        return Peel(_difference(before, now))
    sizes = zip(before.shape, now.shape, strict=True)
    other = {axis for axis, pair in enumerate(sizes) if axis not in leaf.axes and not is_same_number(*pair)}
    if any(_is_spread(before.shape[axis], now.shape[axis]) for axis in other):
        return Peel(_difference(before, now))
    if not other:
        return leaf if leaf.kind == "tensor" else replace(leaf, kind="tensor")
    return replace(leaf, kind="tensor", axes=leaf.axes | other)


def _is_spread(before: Any, now: Any) -> bool:
    """Whether an axis of one place was broadcast, rather than grown by one; the next step tells."""
    return is_same_number(before, 1) and not is_same_number(now, 2)


def _refined_number(leaf: LeafRole, before: Any, now: Any) -> LeafRole:
    step = now - before
    if leaf.kind == "fixed":
        if is_same_number(before, now):
            return leaf
        return LeafRole("number") if _is_float(now) else LeafRole("counted", step=step)
    if leaf.kind == "counted" and not is_same_number(step, leaf.step):
        return LeafRole("number")
    return leaf


# ---- roles that several paths through a body have found


def merged(roles: Sequence[Mapping[Any, Role]]) -> dict[Any, Role]:
    """What one of them changes is carried."""
    found: dict[Any, Role] = {}
    for path in roles:
        for key, role in path.items():
            found[key] = _wider_role(found[key], role) if key in found else role
    return found


def _wider_role(left: Role, right: Role) -> Role:
    if left is right or not isinstance(left, State) or not isinstance(right, State):
        return right if isinstance(right, Listed) and not isinstance(left, Listed) else left
    return State(tuple(map(_wider_leaf, left.leaves, right.leaves)))


_WIDTHS = ("fixed", "counted", "number", "tensor")


def _wider_leaf(left: LeafRole, right: LeafRole) -> LeafRole:
    kind = max(left.kind, right.kind, key=_WIDTHS.index)
    is_written, axes = left.is_written or right.is_written, left.axes | right.axes
    is_left = (kind, is_written, axes) == (left.kind, left.is_written, left.axes)
    return left if is_left else LeafRole(kind, is_written, axes, right.step)


# ---- numbers


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | SymInt | SymFloat) and not isinstance(value, bool)


def _is_float(value: Any) -> bool:
    return isinstance(value, float | SymFloat)


def as_tensor(value: Any) -> Tensor:
    """A number as a tensor without axes, as exact as Python's; a tensor as it is."""
    if isinstance(value, Tensor):
        return value
    return torch.full((), value, dtype=torch.float64 if _is_float(value) else torch.int64)


# ---- in words


def _difference(before: Any, after: Any) -> str:
    left, right = described(before), described(after)
    return f"{left} in one step and {right if right != left else f'another {right[2:]}'} in the next"


def described(value: Any) -> str:
    if isinstance(value, Tensor):
        shape = "x".join("?" if isinstance(size, SymInt) else str(size) for size in value.shape)
        return f"a tensor of {shape or 'no axes'} ({str(value.dtype).removeprefix('torch.')})"
    if value is None or isinstance(value, bool):
        return str(value)
    if is_number(value):
        return "a number"
    return f"a {type(value).__name__}"


def shown(key: Key) -> str:
    return key if isinstance(key, str) else f"self.{key[1]}"


# ---- the roles of all values, laid out as tensors


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
    may_end: bool = False
    """Whether a step may be the last one, however many were counted."""

    # ---- before the body

    @cached_property
    def slots(self) -> list[CarriedTensor]:
        return [slot for key, role in self.roles.items() for slot in self._slots_of(key, role)]

    def _slots_of(self, key: Key, role: Role) -> Iterator[CarriedTensor]:
        if isinstance(role, Listed):
            yield CarriedTensor(key, 0, _stacked_or_none(self.start[key].parts, role.like), role.leaf)
        elif isinstance(role, Gathered):
            if role.reads_last:
                yield CarriedTensor(key, 0, Collected(self.start[key].parts)[-1], LeafRole("tensor"))
        elif isinstance(role, State):
            for place, (leaf, value) in enumerate(zip(role.leaves, self.start[key].leaves, strict=True)):
                if leaf.kind in {"tensor", "number"}:
                    yield CarriedTensor(key, place, as_tensor(value), leaf)

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
                found += [as_tensor(leaf) for leaf in _collected_leaves(key, after)]
        return found

    def roles_after(
        self, given: Moment, after: Moment, last: Sequence[str], state: Sequence[str]
    ) -> dict[Key, Role] | Peel:
        """The roles that a pass has shown, with those that were known; `last` are the names that are read after it, and
        those of `state` may be left as they were.
        """
        found: dict[Key, Role] = {}
        for key, before in given.items():
            role = _role_after(self.roles.get(key), before, after.get(key))
            if isinstance(role, Peel):
                return Peel(f"`{shown(key)}`, which is {role.reason}")
            if role is not None:
                found[key] = _not_counted(role) if self.may_end else role
        for key in after:
            if key not in given and key in last and key in state:
                return Peel(f"`{shown(key)}`, which is not bound in every step")
            if key not in given and (isinstance(key, tuple) or key in last):
                found[key] = self.roles.get(key, Last())
        return found

    def roles_wanted(self, lists: Mapping[Key, list[Any]]) -> dict[Key, Role] | None:
        """The roles where a pass has failed since it read a list that it fills; the list must hold something before."""
        wanted: dict[Key, Role] = {}
        for key, role in self.roles.items():
            earlier = next((part for part in lists.get(key, ()) if isinstance(part, Earlier)), None)
            if earlier is not None and isinstance(role, Gathered) and self.start[key].parts:
                if earlier.is_all_wanted:
                    wanted[key] = Listed()
                elif earlier.is_last_wanted and not role.reads_last:
                    wanted[key] = replace(role, reads_last=True)
        return {**self.roles, **wanted} if wanted else None

    # ---- after the loop

    def after_loop(
        self, count: Any, begun: Begun, after: Moment, carried: Sequence[Any], collected: Sequence[Tensor], goes_on: Any
    ) -> dict[Key, Any]:
        """What all is when the loop has ended, given what a step hands on and leaves."""
        handed = [as_tensor(value) for value in carried]
        lasts, steps = end(count, [slot.initial for slot in self.slots], handed, collected, begun.number, goes_on)
        if not self.may_end:
            self._tell_growth(count, begun.carried, handed, lasts)
        return self._results(count, after, lasts, steps)

    def _tell_growth(self, count: Any, given: Sequence[Any], after: Sequence[Any], carried: Sequence[Tensor]) -> None:
        """Where an axis grows by the same in each step, torch is told how long it is in the end."""
        for slot, seen, left, result in zip(self.slots, given, after, carried, strict=True):
            for axis in slot.leaf.axes:
                step = left.shape[axis] - seen.shape[axis]
                if not expression_of(step).free_symbols or is_same_number(step, 0):
                    state(result.shape[axis] == slot.initial.shape[axis] + step * count)

    def _results(
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


def _stacked_or_none(parts: Sequence[Any], like: Any) -> Tensor:
    if parts or not isinstance(like, Tensor):
        return stacked(parts)
    return torch.empty((0, *like.shape), dtype=like.dtype, device=like.device)


def _not_counted(role: Role) -> Role:
    """Where nobody knows how many steps are taken, a number that grows by the same in each is one as any other."""
    if not isinstance(role, State) or all(leaf.kind != "counted" for leaf in role.leaves):
        return role
    return State(tuple(LeafRole("number") if leaf.kind == "counted" else leaf for leaf in role.leaves))


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
    elif isinstance(start.value, deque) and isinstance(after.value, deque):
        start.value.extend(value)  # it is as long as before, and full
    elif isinstance(start.value, dict):
        start.value.update(value)
    else:
        return value
    return start.value


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
