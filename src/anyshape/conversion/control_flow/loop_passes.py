"""The passes over a loop's body: some off the record, until it is known what is carried; then one for the trace.

Where the first step is unlike the others (what is carried is None before it, or `if t == 0`), it is taken before the
loop, as Python would.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import sympy
import torch
from torch import SymBool, SymFloat, SymInt, Tensor

from anyshape.conversion.control_flow import loop_trace
from anyshape.conversion.control_flow.carried import Key, LoopPlan, LoopScope, Moment, Peel, Role, merged, shown
from anyshape.conversion.control_flow.collected import LeftEarlyError, LoopError, parts_of
from anyshape.conversion.control_flow.forks import Exploration, explore
from anyshape.conversion.control_flow.items import Items, PossibleStep, Row, Single, all_places, copied
from anyshape.conversion.control_flow.loop_trace import Begun
from anyshape.conversion.control_flow.marks import ALWAYS
from anyshape.errors import AnyshapeError
from anyshape.sizes import budgets
from anyshape.torchkit.capture import expression_of

Passes = Generator[Any, None, Any]
"""Items for the rewritten loop; each time one is taken, the body runs."""


@dataclass(frozen=True)
class LoopSite:
    """A loop in the text."""

    text: str
    """What it goes over, or by what it goes on."""
    place: str
    state: tuple[str, ...]
    last: tuple[str, ...]

    def told(self, what: str) -> str:
        return f"a loop {self.text} {what}: {self.place}"


@dataclass
class Record:
    """What the loops of one trace have come to."""

    used: Callable[[str], None]
    open: list[Loop] = field(default_factory=list)
    """Those that have begun and not ended."""


class Plain:
    """A loop that Python can go through: it does."""

    given: Mapping[str, Any] = {}

    def __init__(self, values: Any) -> None:
        self._values = values

    def __iter__(self) -> Iterator[Any]:
        values, self._values = self._values, None  # not kept alive longer than by Python
        return iter(values)

    def forgives(self) -> bool:
        return False

    def left(self, value: Any) -> Any:
        return value

    def leaves(self) -> bool:
        return True


class Loop:
    """A loop over a varying size."""

    may_be_left = False
    """Whether a pass that returns means only that this loop cannot be kept."""

    def __init__(self, items: Items | Row | Turns, site: LoopSite, scope: LoopScope, record: Record) -> None:
        self._items, self.site, self._scope, self._record = items, site, scope, record
        self._failure: Exception | None = None
        self._may_fail: Callable[[Exception], bool] | None = None
        self._passes: Passes | None = None
        self._left = self._ends = False
        """Whether this pass has left the loop; whether some pass has."""

    @property
    def given(self) -> Mapping[str, Any]:
        return self._scope.given

    def __iter__(self) -> Iterator[Any]:
        self._passes = self._passes_over_all()
        return self._passes

    def left(self, value: Any) -> Any:
        """By `return`."""
        if self.leaves():
            return value
        raise LeftEarlyError(self.site.told("is left early"))

    def leaves(self) -> bool:
        """Whether `break` shall leave the Python loop; in a pass it only says that no other step follows this one."""
        if self._may_fail is None:
            if self in self._record.open:
                self._record.open.remove(self)
            return True
        self._left = self._ends = True
        return False

    def forgives(self) -> bool:
        """Whether the exception at hand only means that this pass has failed."""
        error = sys.exception()
        is_final = _is_final(error) and not (self.may_be_left and isinstance(error, LeftEarlyError))
        if isinstance(error, Exception) and not is_final and self._may_fail and self._may_fail(error):
            self._failure = error
            return True
        if self._passes is not None and inspect.getgeneratorstate(self._passes) == inspect.GEN_SUSPENDED:
            self._passes.close()  # the trace goes on the record now, not when the iterator is collected
        return False

    # ---- from the first item to the last

    def _passes_over_all(self) -> Passes:
        self._record.open.append(self)
        assert not isinstance(self._items, Turns)
        for part in self._items.parts if isinstance(self._items, Row) else (self._items,):
            if self._ends:
                raise LeftEarlyError(self.site.told("is left early, and goes over parts of several sizes"))
            if isinstance(part, Single):
                yield part.item
                self._scope.write({key: kept.value for key, kept in self._scope.read().items()})
            else:
                yield from self._passes_over(part)
        self._record.open.remove(self)

    def _passes_over(self, items: Items) -> Passes:
        start = self._moment_before(self.site.state)
        for peeled in range(budgets.STEPS_PEELED + 1):
            plan = yield from self._passes_to_plan(items, start)
            if isinstance(plan, LoopPlan):
                yield from self._pass_on_the_record(items, plan)
                break
            places = all_places(items) if plan.failure is not None else None
            if places is not None:
                yield from self._passes_over_places(places, start)
                break
            if peeled == budgets.STEPS_PEELED:
                raise self._error_of(plan)
            self._scope.write({key: kept.value for key, kept in start.items()})
            if not items.count >= 1:  # as Python would ask
                break
            yield items.first()
            # what is read after the loop has a value now, which stays if there is no other step
            items = items.part(1, items.count - 1)
            start = self._moment_before((*self.site.state, *self.site.last))

    def _passes_over_places(self, places: Sequence[PossibleStep], start: Moment) -> Passes:
        """As Python would, over literals; a step whose place does not hold leaves all as it was."""
        values = {key: kept.value for key, kept in start.items()}
        for place in places:
            before = self._scope.write(values)
            copies = {key: copied(kept) for key, kept in before.items()}
            yield place.item
            after = self._scope.read()
            if any(key not in before for key in after if isinstance(key, tuple) or key in self.site.last):
                raise LoopError(self.site.told("makes names that depend on which places hold"))
            values = {key: place.chosen(kept, copies[key], after[key], shown(key)) for key, kept in before.items()}
        self._scope.write(values)
        self._tell_what_became("taken at every place")

    def _moment_before(self, names: Sequence[str]) -> Moment:
        """What a step may find from before it: a name that it binds first is none of it."""
        return {key: kept for key, kept in self._scope.read().items() if key in names or isinstance(key, tuple)}

    def _error_of(self, peel: Peel) -> Exception:
        return peel.failure or LoopError(f"a loop carries {peel.reason}: {self.site.place}")

    # ---- passes off the record

    def _passes_to_plan(self, items: Items | Turns, start: Moment) -> Generator[Any, None, LoopPlan | Peel]:
        roles: dict[Key, Role] = {}
        for _ in range(budgets.TRIAL_PASSES):
            plan = LoopPlan(start, roles, self._ends)
            found = yield from self._pass_off_the_record(items, plan)
            if isinstance(found, Peel):
                return found
            is_same = found.keys() == roles.keys() and all(found[key] is role for key, role in roles.items())
            if is_same and plan.may_end == self._ends:
                plan.require_own_memory()
                return replace(plan)  # anew: what this one has made is off the record, too
            roles = found
        raise LoopError(f"what a loop carries differs from step to step: {self.site.place}")

    def _pass_off_the_record(
        self, items: Items | Turns, plan: LoopPlan
    ) -> Generator[Any, None, dict[Key, Role] | Peel]:
        paths: list[dict[Key, Role]] = []
        exploration = explore()
        with loop_trace.off_the_record():
            begun = _marks_begun(items, plan)
            for _ in exploration:
                given = plan.given(begun)
                lists = {key: parts_of(value) for key, value in given.items() if isinstance(value, list)}
                before = self._scope.write(given)
                yield from self._run_of_body(items, begun, lambda _: True)
                if self._failure is not None:
                    if _is_refused(exploration, self._failure):
                        continue
                    return plan.roles_wanted(lists) or Peel("", self._failure)
                found = plan.roles_after(before, self._scope.read(), self.site.last, self.site.state)
                if isinstance(found, Peel):
                    return found
                paths.append(found)
                exploration.give(())
        if _asks_for_the_first(exploration, begun.index):
            return Peel("what the first step alone decides")
        return merged(paths)

    def _run_of_body(self, items: Items | Turns, begun: Begun, may_fail: Callable[[Exception], bool]) -> Passes:
        """One run of the body, which may end in a failure."""
        opened, restore_calls = len(self._record.open), loop_trace.calls_kept()
        self._failure, self._may_fail, self._left = None, may_fail, False
        yield items.item(begun.index, iter(begun.slices))
        if self._failure is None:
            yield from self._pass_over_test()
        self._may_fail = None
        if self._failure is not None:
            del self._record.open[opened:]
            restore_calls()

    def _pass_over_test(self) -> Passes:
        yield from ()

    def _goes_on(self) -> Any:
        """What says after a pass whether there is another step."""
        return (0 if self._left else 1) if self._ends else ALWAYS

    # ---- the pass for the trace

    def _pass_on_the_record(self, items: Items | Turns, plan: LoopPlan) -> Passes:
        exploration = explore()
        begun = _marks_begun(items, plan)
        for _ in exploration:
            before = self._scope.write(plan.given(begun))
            yield from self._run_of_body(items, begun, partial(_is_refused, exploration))
            if self._failure is not None:
                continue
            after = self._scope.read()
            found = plan.roles_after(before, after, self.site.last, self.site.state)
            if isinstance(found, Peel):
                raise self._error_of(found)
            exploration.give((plan.carried(after), plan.collected(after), self._goes_on()))
        self._scope.write(plan.after_loop(items.count, begun, after, *exploration.joined()))
        self._tell_what_became("kept as Loop" if plan.growing or plan.may_end else "kept as Scan")

    def _tell_what_became(self, end: str) -> None:
        if not loop_trace.is_off_the_record():
            self._record.used(f"loop {self.site.text} {end}: {self.site.place}")


# ---- `while`


@dataclass(frozen=True)
class Turns:
    """Steps of which only a test tells how many there are."""

    count: Any
    sequences = ()

    def item(self, index: Any, slices: Any) -> bool:
        del index, slices
        return _BODY


_TEST, _BODY = True, False
_ENDLESS = 2**62


class While(Loop):
    """A loop that goes on by a test: kept where sizes or values decide it; else, or where that fails, as in Python."""

    may_be_left = True

    def __init__(self, site: LoopSite, scope: LoopScope, record: Record) -> None:
        super().__init__(Turns(_ENDLESS), site, scope, record)
        self._ends = True
        self._value: Any = None
        self._ends_seen: set[bool] = set()

    def test(self, value: Any) -> None:
        """What the test is, not yet asked for its truth."""
        self._value = value

    def _passes_over_all(self) -> Passes:
        goes_on = yield from self._truth_of_test()
        for attempt in itertools.count():
            is_literal = goes_on is True and self.site.text in _LITERALS
            if attempt <= budgets.STEPS_PEELED and (isinstance(goes_on, SymBool) or is_literal):
                count = _ENDLESS if is_literal else torch.sym_ite(goes_on, _ENDLESS, 0)
                self._record.open.append(self)
                is_kept = yield from self._passes_if_kept(Turns(count), is_literal=is_literal)
                self._record.open.remove(self)
                if is_kept:
                    return
            if not goes_on:
                return
            yield _BODY
            goes_on = yield from self._truth_of_test()

    def _passes_if_kept(self, turns: Turns, *, is_literal: bool) -> Generator[Any, None, bool]:
        start = self._moment_before(self.site.state)
        try:
            self._ends_seen.clear()
            plan = yield from self._passes_to_plan(turns, start)
        except LoopError as error:
            plan = Peel("", error)
        # `while True` that neither sizes nor values end is Python's
        if isinstance(plan, LoopPlan) and (not is_literal or len(self._ends_seen) > 1):
            yield from self._pass_on_the_record(turns, plan)
            return True
        self._scope.write({key: kept.value for key, kept in start.items()})
        return False

    def _truth_of_test(self) -> Generator[Any, None, Any]:
        """Whether there is a first, or a further step, as Python or the file will know."""
        self._scope.given = {}
        exploration = explore()
        for _ in exploration:
            yield _TEST
            exploration.give(_truth_of(self._value))
        return exploration.joined()

    def _pass_over_test(self) -> Passes:
        self._ends_seen.add(self._left)
        if not self._left:
            self._scope.given = {}  # the body has bound its names
            yield _TEST

    def _goes_on(self) -> Any:
        truth = False if self._left else _truth_of(self._value)
        return torch.sym_ite(truth, 1, 0) if isinstance(truth, SymBool) else int(truth)


_LITERALS = ("while `True`", "while `1`")


def _truth_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.bool().long().item()
    return value != 0 if isinstance(value, SymInt | SymFloat) else value if isinstance(value, SymBool) else bool(value)


def _is_final(error: BaseException | None) -> bool:
    """Whether an error speaks of the whole trace and not of one step."""
    return isinstance(error, AnyshapeError) and (not isinstance(error, LoopError) or isinstance(error, LeftEarlyError))


def _is_refused(exploration: Exploration, error: Exception) -> bool:
    """Whether the model itself refuses on this path, so that no file has to serve it."""
    if isinstance(error, NameError | TypeError | AttributeError | LoopError):
        return False  # rather something that only an earlier step would have made, or that no loop of a file can do
    traceback = error.__traceback__
    try:
        exploration.fail(error)
    except Exception:  # noqa: BLE001  it gives the error back
        error.__traceback__ = traceback
        return False
    return True


def _marks_begun(items: Items | Turns, plan: LoopPlan) -> Begun:
    return loop_trace.begin(items.count, [slot.initial for slot in plan.slots], items.sequences, plan.growing)


def _asks_for_the_first(exploration: Exploration, index: Any) -> bool:
    """Whether the body has decided by a condition on the step alone that the first step answers in its own way."""
    symbol = expression_of(index)
    return any(_is_of_the_first(one, symbol) for one in exploration.decisions if one.free_symbols == {symbol})


def _is_of_the_first(condition: sympy.Basic, symbol: sympy.Basic) -> bool:
    first, *others = [condition.subs(symbol, step) for step in range(8)]
    return all(other == others[0] for other in others) and first != others[0]
