"""Branches: code that decides by a size or a value is run once for each side, and the results are joined.

All runs stand in one trace. At a question of the model's own (`if x.shape[1] > 12`) whose answer differs among the
declared sizes, the innermost module call or loop body around it is run again with the other answer, and where the two
give different tensors `choose` picks one. So branches in different modules add up, and do not multiply.

A path is traced as if the sizes were some that take it: torch's hints are those of a sample of the path. None of the
answers is kept as a guard, since another path contradicts it.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import sympy
import torch
from torch import nn
from torch.fx.experimental.sym_node import SymNode

from anyshape.conversion.control_flow.samples import Samples, named_size, remember
from anyshape.errors import AnyshapeError
from anyshape.sizes import budgets
from anyshape.sizes.expressions import NO_VALUE, Known, Values, evaluate, raising, symbols_of
from anyshape.source.spans import OURS, Span, is_ours, is_users, is_within, span_of_code, span_of_stack
from anyshape.torchkit.capture import Recorder, expression_of, is_same_number
from anyshape.torchkit.private_names import pytree

# ---- who asks: the model's own code, a layer of torch, or torch itself

_TORCH = Path(torch.__file__).resolve().parent
_BETWEEN = (_TORCH / "__init__.py", _TORCH / "fx" / "experimental", OURS)
"""What lies between a question in Python and its answer."""
OWN: frozenset[str] = frozenset()
"""The files of the modules that are traced now: the model's code, though one may lie within torch."""


def files_of(model: nn.Module) -> frozenset[str]:
    """Where the modules of a model say what they do."""
    forwards = [inspect.getattr_static(type(module), "forward") for module in model.modules()]
    codes = [getattr(inspect.unwrap(forward), "__code__", None) for forward in forwards]
    return frozenset(code.co_filename for code in codes if code and not is_ours(code.co_filename))


_TRUTHS = (sympy.true, sympy.false)


def is_question(expression: sympy.Basic) -> bool:
    """Whether it is true or false, depending on sizes or values; sympy takes a symbol for either."""
    is_truth = isinstance(expression, sympy.logic.boolalg.Boolean) and not isinstance(expression, sympy.Symbol)
    return is_truth and bool(symbols_of(expression))


def asker_of(frame: FrameType | None, *, by_value: bool = False) -> FrameType | None:
    """Who put a question to Python: the model's code or a layer of torch; None where torch asks for itself.

    Python asks a size by `__bool__`. Where one of torch's operators asks, no such frame is between; and there is none
    where a tensor is asked for its value.
    """
    asked_by_python = by_value
    while frame is not None:
        name = frame.f_code.co_filename
        if is_models(name):
            return frame if asked_by_python else None
        if not is_within(name, *_BETWEEN) and frame.f_code.co_name != "__torch_function__":
            return None
        asked_by_python |= frame.f_code.co_name == "__bool__"
        frame = frame.f_back
    return None


def is_raised_by_model(error: BaseException) -> bool:
    """Whether the model's code or a layer raised it, and not torch at something that it cannot trace."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and is_models(step.tb_frame.f_code.co_filename)


def is_models(filename: str) -> bool:
    return is_users(filename) or filename in OWN or is_within(filename, _TORCH / "nn")


# ---- questions that were answered both ways

_NOTE = "anyshape.path"
"""Where a node of the trace holds on which path it was made."""


class TooManyPathsError(AnyshapeError):
    """A piece of code has more paths than can be traced."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = tuple(dict.fromkeys(spans))
        places = ", ".join(map(str, self.spans))
        super().__init__(f"more than {budgets.MOST_PATHS} paths through the branches at {places}")


@dataclass(frozen=True, eq=False)
class Decision:
    """A question that was answered both ways."""

    condition: sympy.Basic
    node: SymNode
    answer: bool
    site: tuple[str, int]
    span: Span | None
    by_value: bool


@dataclass(eq=False)
class Frame:
    """One run of a piece of code: the answers to give first, those that were given, and the sizes that take them."""

    prefix: Sequence[bool]
    samples: Samples
    decisions: list[Decision] = field(default_factory=list)


class Forks:
    """The branches of one trace."""

    def __init__(self, samples: Samples, recorder: Recorder) -> None:
        self._samples = samples
        self._recorder = recorder
        self._frames: list[Frame] = []
        self._replayed: Samples | None = None
        self._signed: list[Samples] = []
        self._levels: dict[tuple[str, int], int] = {}
        """How many calls further out a question is settled, by its line."""
        self._moved_out = False
        self._groups = itertools.count()
        self._free: frozenset[sympy.Symbol] = frozenset()
        self._known: Known = {}
        self._hints: dict[tuple[sympy.Basic, type], Any] = {}
        self._known_at: dict[int, tuple[Known, dict[tuple[sympy.Basic, type], Any]]] = {}
        """What expressions are, by the sizes that torch sees; to compute them anew each time takes most of a trace."""
        self._environment: Any = None
        self.asked: Any = None
        """The symbolic number of torch's that is asked about."""
        self.branches: dict[tuple[str, int], Decision] = {}
        """The questions that were answered both ways, by line."""

    @property
    def is_running(self) -> bool:
        """Whether sizes are those of a path: while the model runs, and while a part of its trace is run again."""
        return bool(self._frames) or self._replayed is not None

    @property
    def samples(self) -> Samples:
        """The sizes that take the present path."""
        return self._replayed or (self._frames[-1].samples if self._frames else self._samples)

    # ---- questions

    def known(self, environment: Any, question: sympy.Basic) -> bool | None:
        """The answer that is the same at all sizes of the present path; None where they differ.

        A question that has no answer here, since it speaks of values or too few sizes are left, raises LookupError.
        """
        self._environment = environment
        samples = self.samples
        free = symbols_of(question) & self._free
        values = samples.values(question, free) if self.speaks_of_sizes(question, free) else None
        if values is None or (free and not _are_all_equal(values)):
            raise LookupError
        if not _are_all_equal(values):
            return None
        if not samples.vary(symbols_of(question)):
            raise LookupError
        return bool(values.flat[0])

    def answer(self, question: sympy.Basic) -> Any:
        """The answer on the present path, which is not the same at all of its sizes; None where torch has to say."""
        if self._replayed is not None:
            return self.value_of(question) if self.speaks_of_sizes(question) else None
        asker = self._asker_of(question)
        if not self.speaks_of_sizes(question):
            return None if asker is None else self._decision_on(question, asker, by_value=True)
        values = self.samples.values(question)
        if asker is not None and values is not None and not _are_all_equal(values):
            return self._decision_on(question, asker, by_value=False)
        hint = self.value_of(question)
        if hint is None:
            return None  # made of what has no value here
        self._recorder.add_guard(question if hint is sympy.true else _assumption_by(question, hint))
        return hint

    def note(self, question: sympy.Basic, answer: bool) -> None:
        """A question of the model's with one answer at all sizes that stand for the declared ones: there are others."""
        if self._replayed is None and self._asker_of(question) is not None:
            self._recorder.add_guard(question if answer else sympy.Not(question))

    def value_of(self, expression: sympy.Basic) -> sympy.Basic | None:
        """What an expression of sizes is on the present path."""
        if self._environment is None:
            return None
        if expression not in self._known:
            try:
                with raising():
                    evaluate(expression, self._sizes(), self._known)
            except NO_VALUE:
                return None
        value = self._known[expression]
        return sympy.sympify(value.item() if isinstance(value, (np.generic, np.ndarray)) else value)

    def hint_of(self, node: SymNode) -> Any:
        """What a number of torch's is on the present path, as a number of Python's; None where that is not known.

        torch asks for it whenever it computes with the number.
        """
        key = (node._expr, node.pytype)
        if key not in self._hints:
            value = self.value_of(node.expr)
            if value is None:  # it may get one
                return None
            self._hints[key] = node.pytype(bool(value) if value in _TRUTHS else value)
        return self._hints[key]

    def _asker_of(self, question: sympy.Basic) -> FrameType | None:
        if not is_question(question) or self.asked is None:
            return None
        return asker_of(sys._getframe(1), by_value=not self.speaks_of_sizes(question))

    def speaks_of_a_size(self, condition: sympy.Basic) -> bool:
        sizes = self._sizes()
        return any(symbol in sizes for symbol in symbols_of(condition))

    def speaks_of_sizes(self, question: sympy.Basic, others: Collection[sympy.Symbol] = ()) -> bool:
        """Alone, and not of values."""
        sizes = self._sizes()
        is_known = (symbol in sizes or symbol in others for symbol in symbols_of(question))
        return self._environment is not None and all(is_known)

    def note_size_of_a_step(self, size: Any) -> None:
        """A size that is another one in each step of a loop: what holds for every number is known of it."""
        self._free |= symbols_of(expression_of(size))

    def _sizes(self) -> Mapping[sympy.Symbol, int]:
        """None where nothing has been asked yet."""
        return {} if self._environment is None else self.samples.first(self._environment.backed_var_to_val)

    def _decision_on(self, question: sympy.Basic, asker: FrameType, *, by_value: bool) -> Any:
        # the same question has the same answer in the whole of a run
        for known in (one for frame in self._frames for one in frame.decisions):
            if known.condition in (question, sympy.Not(question)):
                return sympy.true if known.answer == (known.condition == question) else sympy.false
        site = (asker.f_code.co_filename, asker.f_lineno)
        owner = self._frames[max(len(self._frames) - 1 - self._levels.get(site, 0), 0)]
        place = len(owner.decisions)
        if place - len(owner.prefix) > budgets.MOST_PATHS:  # each of them has another side
            raise TooManyPathsError([one.span for one in owner.decisions if one.span is not None])
        hint = by_value or bool(self.value_of(question))
        answer = owner.prefix[place] if place < len(owner.prefix) else hint
        span = span_of_stack(asker) or span_of_code(asker.f_code, asker.f_lasti, asker.f_lineno)
        owner.decisions.append(Decision(question, self.asked, answer, site, span, by_value))
        if not by_value:
            for frame in self._frames[self._frames.index(owner) :]:
                frame.samples = frame.samples.where(question, answer)
            self._show_sizes(self.samples)
        return sympy.true if answer else sympy.false

    # ---- the sizes that torch sees

    def _show_sizes(self, samples: Samples) -> None:
        if self._environment is not None:  # else nothing has been asked
            self._known, self._hints = self._known_at.setdefault(int(samples.rows[0]), ({}, {}))
            known, first = self._environment.backed_var_to_val, samples.first()
            known.update({symbol: sympy.Integer(first[symbol]) for symbol in known if symbol in first})

    def sign(self, node: torch.fx.Node) -> None:
        """Note on a node of the trace on which path it was made."""
        if self._frames:
            if not self._signed or self._signed[-1] is not self.samples:
                self._signed.append(self.samples)
            node.meta.setdefault("custom", {})[_NOTE] = len(self._signed) - 1

    @contextlib.contextmanager
    def replaying(self, node: torch.fx.Node) -> Iterator[None]:
        """Inside, torch sees the sizes of the path on which a node was made."""
        place = node.meta.get("custom", {}).get(_NOTE)
        outer = self._replayed
        if self._frames or place is None:
            yield
            return
        self._replayed = self._signed[place]
        self._show_sizes(self._replayed)
        try:
            yield
        finally:
            self._replayed = outer
            self._show_sizes(self.samples)

    # ---- runs

    def begin(self, prefix: Sequence[bool]) -> Frame:
        frame = Frame(prefix, self.samples)
        self._frames.append(frame)
        self._show_sizes(frame.samples)
        return frame

    def end(self, frame: Frame) -> None:
        del self._frames[self._frames.index(frame) :]
        self._show_sizes(self.samples)

    def choice(self, decision: Decision) -> tuple[Any, int]:
        """What `choose` goes by, and a number for the choices that belong together."""
        self.branches.setdefault(decision.site, decision)
        return torch.sym_ite(torch.SymBool(decision.node), 1, 0), next(self._groups)

    def move_out(self, decision: Decision) -> None:
        """The next trace settles this question one call further out."""
        self._levels[decision.site] = self._levels.get(decision.site, 0) + 1
        self._moved_out = True

    def begin_anew(self) -> bool:
        """Whether another trace may come further than the one that failed."""
        moved, self._moved_out = self._moved_out, False
        self.branches.clear()
        return moved


def _are_all_equal(values: Values) -> bool:
    return bool((values == values.flat[0]).all())


def _assumption_by(question: sympy.Basic, hint: sympy.Basic) -> sympy.Basic:
    """What is taken for granted by an answer other than yes."""
    return sympy.Not(question) if hint is sympy.false else sympy.Eq(question, hint)


CURRENT: Forks | None = None
"""The branches of the trace that is running, if it takes both sides of them."""


def note_size_of_a_step(size: Any) -> None:
    if CURRENT is not None:
        CURRENT.note_size_of_a_step(size)


def is_named_size(number: Any) -> bool:
    """Whether a number is one of the sizes that the trace running now has a name for."""
    forks = CURRENT
    return forks is not None and forks.is_running and forks.speaks_of_sizes(number.node.expr)


# ---- one piece of code on all of its paths: a run for each, and one result; where they differ, the file chooses


class MovedOutError(AnyshapeError):
    """The sides of a branch cannot be joined where they were run; the code around has to be run for each side."""


def explore() -> Exploration:
    """For a loop: its body is run once for each path through it."""
    forks = CURRENT
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
    if isinstance(first, int) and isinstance(second, int):
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
