"""A list that holds one tensor for each step of a loop, as one tensor whose first axis counts the steps.

What is in the list for Python is tensors, and `StackedSteps` in the place of as many tensors as there were steps. It
can be appended to, added to, indexed and stacked; it cannot be gone through but in a loop that is kept as a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Self, SupportsIndex

import torch
from torch import Tensor

from anyshape.conversion.control_flow.loop_trace import is_varying
from anyshape.errors import AnyshapeError
from anyshape.sizes import budgets
from anyshape.torchkit.capture import is_same_number


class LoopError(AnyshapeError):
    """A loop over a size that varies does what no loop of the file could do."""


class LeftEarlyError(LoopError):
    """A loop is left by `break`, `return` or an exception: the file would run on."""


# ---- the list


class Placeholder:
    """Stands in a list for a number of tensors that is not known."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> NoReturn:
        name = getattr(func, "__name__", func)
        raise LoopError(f"`{name}` is given a list that a loop over a varying size has filled, which it cannot take")

    @property
    def count(self) -> Any:
        raise NotImplementedError


class StackedSteps(Placeholder):
    """As many tensors as the first axis of this one is long."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def count(self) -> Any:
        return self.tensor.shape[0]


class Earlier(Placeholder):
    """What is in a list before a step; where it is read unforeseen, that is noted."""

    def __init__(self, counted: Callable[[], Any], last: Tensor | None) -> None:
        self._counted, self._last = counted, last
        self.is_last_wanted = self.is_all_wanted = False

    @property
    def count(self) -> Any:
        return self._counted()

    @property
    def last(self) -> Tensor:
        self.is_last_wanted = True
        return self._refuse_reading() if self._last is None else self._last

    def all(self) -> NoReturn:
        self.is_all_wanted = True
        self._refuse_reading()

    def _refuse_reading(self) -> NoReturn:
        raise LoopError("a loop reads a list that it fills")


def holds_steps(values: Any) -> bool:
    return isinstance(values, list | tuple) and any(isinstance(part, Placeholder) for part in parts_of(values))


def parts_of(values: Sequence[Any]) -> list[Any]:
    """What is in a list for Python."""
    return [*list.__iter__(values)] if isinstance(values, list) else [*values]


class Collected(list[Any]):
    """A list with placeholders in it."""

    @property
    def parts(self) -> list[Any]:
        return parts_of(self)

    @property
    def length(self) -> Any:
        return sum(part.count if isinstance(part, Placeholder) else 1 for part in self.parts)

    def __bool__(self) -> bool:
        return bool(self.length > 0)

    def __iter__(self) -> Any:
        if not holds_steps(self):
            return super().__iter__()
        raise LoopError("a list that a loop over a varying size has filled is read one by one outside of a loop")

    def __getitem__(self, index: Any) -> Any:
        parts = self.parts
        if isinstance(index, slice):
            return self._slice_of_list(index)
        if isinstance(index, int):
            from_start = parts[: index + 1] if index >= 0 else parts[index:]
            if len(from_start) == (index + 1 if index >= 0 else -index) and not holds_steps(from_start):
                return parts[index]
            if index == -1 and isinstance(parts[-1], Earlier):
                return parts[-1].last
        return stacked(parts)[index]

    def _slice_of_list(self, index: slice) -> Collected:
        if index.step == -1 and index.start is None and index.stop is None:
            return self.reversed()
        whole = stacked(self.parts)
        if isinstance(index.step, int) and index.step < 0:
            raise LoopError("a list that a loop over a varying size has filled is cut backwards")
        return Collected([StackedSteps(whole[index])])

    def reversed(self) -> Collected:
        return Collected(map(_part_reversed, reversed(self.parts)))

    def reverse(self) -> None:
        self[:] = self.reversed().parts

    def copy(self) -> Collected:
        return Collected(self.parts)

    def pop(self, index: SupportsIndex = -1) -> Any:
        if isinstance(self.parts[index], Placeholder):
            raise LoopError("a value is taken out of a list that a loop over a varying size has filled")
        return super().pop(index)

    def extend(self, values: Iterable[Any]) -> None:
        super().extend(parts_of(values) if isinstance(values, list) else values)

    def __add__(self, other: Any) -> Collected:
        return Collected([*self.parts, *parts_of(other)])

    def __radd__(self, other: Any) -> Collected:
        return Collected([*parts_of(other), *self.parts])

    def __iadd__(self, other: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(other)
        return self


def list_of_steps(values: Any) -> Collected | None:
    """A list that holds steps, as one that knows of them; None for anything else."""
    return Collected(parts_of(values)) if isinstance(values, list) and holds_steps(values) else None


def _part_reversed(part: Any) -> Any:
    return StackedSteps(part.tensor.flip(0)) if isinstance(part, StackedSteps) else part


def stacked(parts: Sequence[Any]) -> Tensor:
    """All tensors of a list on a new first axis."""
    pieces = [_as_block(part) for part in parts]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, 0)


def _as_block(part: Any) -> Tensor:
    if isinstance(part, StackedSteps):
        return part.tensor
    if isinstance(part, Tensor):
        return part.unsqueeze(0)
    if isinstance(part, Earlier):
        part.all()
    raise LoopError("a list that a loop over a varying size has filled holds something that is no tensor")


def joined(parts: Sequence[Any], axis: int) -> Tensor:
    """All tensors of a list one behind the other."""
    for part in parts:
        if isinstance(part, Earlier):
            part.all()
    pieces = [_one_behind_the_other(part.tensor, axis) if isinstance(part, StackedSteps) else part for part in parts]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, axis)


def _one_behind_the_other(steps: Tensor, axis: int) -> Tensor:
    axis %= steps.ndim - 1
    return steps.movedim(0, axis).flatten(axis, axis + 1)


# ---- functions of torch that take such a list, or that would make as many tensors as an axis is long


def _stack(tensors: Any, dim: int = 0, **options: Any) -> Any:
    if not holds_steps(tensors) or options:
        return NotImplemented
    return stacked(parts_of(tensors)).movedim(0, dim)


def _cat(tensors: Any, dim: int = 0, **options: Any) -> Any:
    if not holds_steps(tensors) or options.keys() - {"axis"}:
        return NotImplemented
    return joined(parts_of(tensors), options.get("axis", dim))


def _joined_along(axis: int, axis_of_vectors: int | None) -> Callable[..., Any]:
    """`hstack`, `vstack`, `column_stack`: vectors may be joined along another axis, or (None) each be a column."""

    def answer(tensors: Any) -> Any:
        if not holds_steps(tensors):
            return NotImplemented
        parts = parts_of(tensors)
        element = next(part.tensor[0] if isinstance(part, StackedSteps) else part for part in parts)
        if element.ndim > 1:
            return joined(parts, axis)
        return stacked(parts).movedim(0, axis) if axis_of_vectors is None else joined(parts, axis_of_vectors)

    return answer


def _unbind(x: Any, dim: int = 0) -> Any:
    if not isinstance(x, Tensor) or not x.ndim or not is_varying(x.shape[dim]):
        return NotImplemented
    return Collected([StackedSteps(x.movedim(dim, 0))])


def _split(x: Any, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> Any:
    size = split_size if split_size_or_sections is None else split_size_or_sections
    if not isinstance(x, Tensor) or not isinstance(size, int) or not is_varying(x.shape[dim]):
        return NotImplemented
    if size < 1:
        return NotImplemented
    dim, count = dim % x.ndim, x.shape[dim] // size
    rest: list[Tensor] = []
    if size != 1 and not is_same_number(x.shape[dim] % size, 0) and x.shape[dim] % size != 0:
        rest.append(x.narrow(dim, count * size, x.shape[dim] % size))
        x = x.narrow(dim, 0, count * size)
    shape = (*x.shape[:dim], count, size, *x.shape[dim + 1 :])
    return Collected([StackedSteps(x.reshape(shape).movedim(dim, 0)), *rest])


def _chunk(x: Any, chunks: Any, dim: int = 0) -> Any:
    if isinstance(x, Tensor) and is_varying(chunks) and is_same_number(x.shape[dim], chunks):
        return _split(x, 1, dim)
    if not isinstance(x, Tensor) or not isinstance(chunks, int) or not is_varying(x.shape[dim]):
        return NotImplemented
    size = x.shape[dim]
    length = (size + chunks - 1) // chunks
    # four rows in three parts are two of two: how many there are is a question, and each answer a path of its own
    for count in range(chunks, 1, -1) if chunks <= budgets.MOST_KEYS_OF_A_TABLE else ():
        if (size + length - 1) // length == count:
            last = (count - 1) * length
            whole = [x.narrow(dim, place * length, length) for place in range(count - 1)]
            return (*whole, x.narrow(dim, last, size - last))
    return NotImplemented if chunks > budgets.MOST_KEYS_OF_A_TABLE else (x,)


ANSWERS: dict[tuple[Any, str], Callable[..., Any]] = {
    (torch, "stack"): _stack,
    **{(torch, name): _cat for name in ("cat", "concat", "concatenate")},
    **{(torch, name): _joined_along(0, None) for name in ("vstack", "row_stack")},
    (torch, "hstack"): _joined_along(1, 0),
    (torch, "column_stack"): _joined_along(1, None),
    **{(owner, "unbind"): _unbind for owner in (torch, Tensor)},
    **{(owner, "split"): _split for owner in (torch, Tensor)},
    **{(owner, "chunk"): _chunk for owner in (torch, Tensor)},
}
