"""One piece of code on all of its paths: a run for each, and one result for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import sympy

from anyshape.conversion.control_flow import forks as forking
from anyshape.conversion.control_flow import paths_joining
from anyshape.conversion.control_flow.forks import MOST_PATHS, Decision, Forks, Frame, TooManyPathsError
from anyshape.conversion.control_flow.forks_asking import is_raised_by_model
from anyshape.errors import AnyshapeError


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
            if len(self._paths) + len(self._open) > MOST_PATHS:
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
        return self._join([(decisions, completed(result)) for decisions, result in self._paths], 0)

    def _join(self, paths: Sequence[_Path], depth: int) -> Any:
        if len(paths) == 1 or self._forks is None:
            return paths[0][1]
        decision = paths[0][0][depth]
        sides = [[path for path in paths if path[0][depth].answer is answer] for answer in (True, False)]
        results = [self._join(side, depth + 1) for side in sides if side]
        if len(results) == 1:
            return results[0]  # the model raises on the other side
        try:
            return paths_joining.join(
                results[0], results[1], partial(self._forks.choice, decision), self._forks.samples
            )
        except paths_joining.CannotJoinError as error:
            if not self._may_move_out:
                raise
            self._forks.move_out(decision)
            raise MovedOutError from error


def _other_sides(frame: Frame) -> list[Sequence[bool]]:
    """For each answer that was free, the same answers up to there and then the other one."""
    answers = [decision.answer for decision in frame.decisions]
    return [(*answers[:place], not answers[place]) for place in range(len(frame.prefix), len(answers))]
