"""One piece of code on all of its paths: a run for each, and one result; where they differ, the file chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import sympy
import torch

from anyshape.conversion.control_flow import forks as forking
from anyshape.conversion.control_flow.forks import Decision, Forks, Frame, TooManyPathsError, is_raised_by_model
from anyshape.conversion.control_flow.samples import Samples, named_size, remember
from anyshape.errors import AnyshapeError
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Values
from anyshape.torchkit.capture import is_same_number
from anyshape.torchkit.private_names import pytree


class MovedOutError(AnyshapeError):
    """The sides of a branch cannot be joined where they were run; the code around has to be run for each side."""


def explore() -> Exploration:
    """For a loop: its body is run once for each path through it."""
    forks = forking.CURRENT
    return Exploration(forks if forks is not None and forks.is_running else None)


_Path = tuple[Sequence[Decision], Any]


class Exploration:
    """The paths of one piece of code: each turn of an iteration is one run of it.

    `for _ in exploration: exploration.give(run())`, then `exploration.joined()`.
    """

    def __init__(self, forks: Forks | None, *, may_move_out: bool = False) -> None:
        self._forks = forks
        self._may_move_out = may_move_out
        self._paths: list[_Path] = []
        self._open: list[Sequence[bool]] = [()]
        self._frame: Frame | None = None
        self._errors: list[Exception] = []

    @property
    def decisions(self) -> list[sympy.Basic]:
        """Every condition that was decided in these runs."""
        return [decision.condition for decisions, _ in self._paths for decision in decisions]

    @property
    def results(self) -> list[Any]:
        """What each path resulted in."""
        return [result for _, result in self._paths]

    @property
    def is_straight(self) -> bool:
        """Whether there was a single run."""
        return len(self._paths) + len(self._errors) == 1

    def __iter__(self) -> Iterator[None]:
        if self._forks is None:
            yield
            return
        while self._open:
            frame = self._frame = self._forks.begin(self._open.pop(0))
            try:
                yield
            finally:
                self._forks.end(frame)
            self._open += _other_sides(frame)
            if len(self._paths) + len(self._open) > budgets.MOST_PATHS:
                raise TooManyPathsError([one.span for path, _ in self._paths for one in path if one.span is not None])

    def give(self, result: Any) -> None:
        """What the present run results in: tensors, numbers, and containers of them."""
        self._paths.append((tuple(self._frame.decisions) if self._frame else (), result))

    def fail(self, error: Exception) -> None:
        """The present run raises, as the model does where it is called so: no file has to serve that."""
        if self._frame is None or not self._frame.decisions or not is_raised_by_model(error):
            raise error
        self._errors.append(error)

    def joined(self, completed: Callable[[Any], Any] = lambda result: result) -> Any:
        """One result for all paths; `completed` brings the result of each into the form of the others."""
        if not self._paths:
            raise self._errors[0]
        return self._joined_from([(decisions, completed(result)) for decisions, result in self._paths], 0)

    def _joined_from(self, paths: Sequence[_Path], depth: int) -> Any:
        if len(paths) == 1 or self._forks is None:
            return paths[0][1]
        decision = paths[0][0][depth]
        sides = [[path for path in paths if path[0][depth].answer is answer] for answer in (True, False)]
        results = [self._joined_from(side, depth + 1) for side in sides if side]
        if len(results) == 1:
            return results[0]  # the model raises on the other side
        try:
            return join(results[0], results[1], partial(self._forks.choice, decision), self._forks.samples)
        except CannotJoinError as error:
            if not self._may_move_out:
                raise
            self._forks.move_out(decision)
            raise MovedOutError from error


def _other_sides(frame: Frame) -> list[Sequence[bool]]:
    """For each answer that was free, the same answers up to there and then the other one."""
    answers = [decision.answer for decision in frame.decisions]
    return [(*answers[:place], not answers[place]) for place in range(len(frame.prefix), len(answers))]


# ---- two results made one

_PLAIN = (str, bytes, bool, int, float, complex, torch.dtype, torch.device, torch.layout, torch.memory_format)

Choice = tuple[Any, int]
"""A symbolic number that is 1 for the first result, and the number of the branch."""


class CannotJoinError(AnyshapeError):
    """Two results differ in what a file cannot choose between."""


def join(first: Any, second: Any, choice: Callable[[], Choice], samples: Samples) -> Any:
    """One result in place of two, which may be tensors, numbers, and containers of them."""
    left, spec = pytree.tree_flatten(first)
    right, other = pytree.tree_flatten(second)
    if spec != other:
        raise CannotJoinError("one side returns other things than the other")
    once = cache(choice)
    return pytree.tree_unflatten([_joined_leaves(*pair, once, samples) for pair in zip(left, right, strict=True)], spec)


def _joined_leaves(first: Any, second: Any, choice: Callable[[], Choice], samples: Samples) -> Any:
    if first is second:
        return first
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return _joined_tensors(first, second, choice, samples)
    if all(isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool) for value in (first, second)):
        return _joined_sizes(first, second, choice, samples)
    if isinstance(first, _PLAIN) and type(first) is type(second) and first == second:
        return first
    if all(isinstance(value, (float, torch.SymFloat)) for value in (first, second)):
        left, right = (torch.scalar_tensor(value, dtype=torch.float64, device="cpu") for value in (first, second))
        return _joined_tensors(left, right, choice, samples).item()
    if all(isinstance(value, (bool, torch.SymBool)) for value in (first, second)):
        return _joined_sizes(_as_number(first), _as_number(second), choice, samples) != 0
    raise CannotJoinError(f"{_in_words(first)} on one side, {_in_words(second)} on the other")


def are_joinable(values: Sequence[Any]) -> bool:
    """Whether a file can choose between any two of these: tensors of one kind, or numbers of one."""
    first, *others = values
    if isinstance(first, torch.Tensor):
        return all(isinstance(one, torch.Tensor) and _type_and_rank(one) == _type_and_rank(first) for one in others)
    numbers = next((kinds for kinds in _NUMBERS if isinstance(first, kinds)), None)
    return numbers is not None and all(isinstance(one, numbers) for one in others)


def _type_and_rank(tensor: torch.Tensor) -> tuple[torch.dtype, int]:
    return tensor.dtype, tensor.dim()


_NUMBERS = ((bool, torch.SymBool), (int, torch.SymInt), (float, torch.SymFloat))


def _joined_tensors(
    first: torch.Tensor, second: torch.Tensor, choice: Callable[[], Choice], samples: Samples
) -> torch.Tensor:
    if _type_and_rank(first) != _type_and_rank(second):
        raise CannotJoinError(f"{_in_words(first)} on one side, {_in_words(second)} on the other")
    which, group = choice()
    chosen: torch.Tensor = torch.ops.anyshape.choose(which, first, second, group)
    for size, left, right in zip(chosen.shape, first.shape, second.shape, strict=True):
        if not is_same_number(left, right):
            remember(size, _chosen_values(which, left, right, samples), samples)
    return chosen


def _joined_sizes(first: Any, second: Any, choice: Callable[[], Choice], samples: Samples) -> Any:
    if is_same_number(first, second):
        return first
    which, _ = choice()
    values = _chosen_values(which, first, second, samples)
    if values is None or (isinstance(first, int) and isinstance(second, int)):
        zero = 0 * which  # both must be symbolic
        return named_size(torch.sym_ite(which == 1, first + zero, second + zero), values, samples)
    # chosen as tensors are, so that what a size is read from may stay inside its side of the branch
    left, right = (torch.scalar_tensor(size, dtype=torch.int64, device="cpu") for size in (first, second))
    size = _joined_tensors(left, right, choice, samples).item()
    remember(size, values, samples)
    return size


def _chosen_values(which: Any, first: Any, second: Any, samples: Samples) -> Values | None:
    """What the size is at each of the samples; None where values decide."""
    decided = samples.values(which.node.expr)
    if decided is None:
        return None
    result = np.zeros(samples.rows.shape, dtype=np.int64)
    for size, mask in ((first, decided == 1), (second, decided != 1)):
        part = replace(samples, rows=samples.rows[mask])
        values = part.values(size.node.expr) if isinstance(size, torch.SymInt) else np.full(part.rows.shape, size)
        if values is None:
            return None
        result[mask] = values
    return result


def _as_number(value: Any) -> Any:
    return torch.sym_ite(value, 1, 0) if isinstance(value, torch.SymBool) else int(value)


def _in_words(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of {value.dim()} axes of {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, (int, float)):
        return f"{type(value).__name__} {value}"
    return "None" if value is None else type(value).__name__
