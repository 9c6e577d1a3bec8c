"""What one step of a loop hands to the next, found by comparing what a pass was given with what it left.

A value that a body can change has one of these roles:

State      a value that a step reads and changes: tensors, and numbers as tensors without axes
Gathered   a list that grows
Listed     a list that grows, and that a step reads: one tensor, which grows
Last       a name that is bound in the loop and read after it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import SymFloat, SymInt, Tensor, nn

from anyshape.conversion.control_flow.collected import Collected, Placeholder, parts_of
from anyshape.conversion.control_flow.loop_trace import is_varying, leaves_of, rebuilt, version_of
from anyshape.torchkit.capture import is_same_number

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
        is_container = isinstance(value, list | tuple | dict) and not isinstance(value, Collected)
        leaves, structure = leaves_of(value) if is_container else ([value], None)
        versions = [version_of(one) if isinstance(one, Tensor) else 0 for one in leaves]
        return cls(value, leaves, structure, versions, parts_of(value) if isinstance(value, list) else ())

    def with_leaves(self, leaves: Sequence[Any]) -> Any:
        """The like of it with other leaves; its lists and dicts are new ones."""
        return leaves[0] if self.structure is None else rebuilt(leaves, self.structure)

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

    def write(self, values: Mapping[Key, Any]) -> None:
        """Attributes that are not among the values go; names stay."""
        self.given = {key: value for key, value in values.items() if isinstance(key, str)}
        for place, attributes in enumerate(self._attributes):
            for name in [name for name in attributes if name not in _TORCHS and (place, name) not in values]:
                del attributes[name]
        for key, value in values.items():
            if isinstance(key, tuple) and self._attributes[key[0]].get(key[1]) is not value:
                self._attributes[key[0]][key[1]] = value


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
    reads_last: bool = False


@dataclass(frozen=True)
class Listed:
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


def found_role(given: Kept, after: Kept) -> Role | Peel | None:
    """The role of a value that has none yet; None where a pass leaves it alone."""
    if isinstance(given.value, list) and isinstance(after.value, list):
        added = _parts_added(given.parts, after.parts)
        if added:
            return Gathered(_number_of(added))
    state = State(tuple(LeafRole() for _ in given.leaves))
    refined = refined_state(state, given, after)
    return None if refined is state else refined


def _parts_added(before: Sequence[Any], after: Sequence[Any]) -> Sequence[Any]:
    """What has come to a list, if all that was there is still there, in a row at the start or at the end."""
    count = len(after) - len(before)
    if count > 0 and all(left is right for left, right in zip(before, after, strict=False)):
        return after[len(before) :]
    if count > 0 and all(left is right for left, right in zip(before, after[count:], strict=True)):
        return after[:count]
    return ()


def _number_of(parts: Sequence[Any]) -> int | None:
    counts = [part.count if isinstance(part, Placeholder) else 1 for part in parts]
    return None if any(map(is_varying, counts)) else sum(map(int, counts))


def refined_state(state: State, given: Kept, after: Kept) -> State | Peel:
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
        return left
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


def as_tensor(number: Any) -> Tensor:
    """A number as a tensor without axes, as exact as Python's."""
    return torch.full((), number, dtype=torch.float64 if _is_float(number) else torch.int64)


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
