"""The passes over a loop's body: some off the record, until it is known what is carried; then one for the trace.

Where the first step is unlike the others (what is carried is None before it, or `if t == 0`), it is taken before the
loop, as Python would.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sympy

from anyshape.conversion.control_flow import loop_trace
from anyshape.conversion.control_flow.carried import Key, LoopPlan, LoopScope, Moment, Peel, Role, merged, shown
from anyshape.conversion.control_flow.collected import LeftEarlyError, LoopError, parts_of
from anyshape.conversion.control_flow.forks import Exploration, explore
from anyshape.conversion.control_flow.items import Items, PossibleStep, all_places, copied
from anyshape.conversion.control_flow.loop_trace import Begun
from anyshape.errors import AnyshapeError
from anyshape.sizes import budgets
from anyshape.torchkit.capture import expression_of

Passes = Generator[Any, None, Any]
"""Items for the rewritten loop; each time one is taken, the body runs."""


@dataclass(frozen=True)
class LoopSite:
    """A loop in the text."""

    text: str
    """What it goes over."""
    place: str
    state: tuple[str, ...]
    last: tuple[str, ...]

    def told(self, what: str) -> str:
        return f"a loop over `{self.text}` {what}: {self.place}"


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


class Loop:
    """A loop over a varying size."""

    def __init__(self, items: Items, site: LoopSite, scope: LoopScope, record: Record) -> None:
        self._items, self.site, self._scope, self._record = items, site, scope, record
        self._failure: Exception | None = None
        self._may_fail: Callable[[Exception], bool] | None = None
        self._passes: Passes | None = None

    @property
    def given(self) -> Mapping[str, Any]:
        return self._scope.given

    def __iter__(self) -> Iterator[Any]:
        self._passes = self._passes_over_all()
        return self._passes

    def left(self, value: Any) -> Any:
        del value
        raise LeftEarlyError(self.site.told("is left early"))

    def forgives(self) -> bool:
        """Whether the exception at hand only means that this pass has failed."""
        error = sys.exception()
        if isinstance(error, Exception) and not _is_final(error) and self._may_fail and self._may_fail(error):
            self._failure = error
            return True
        if self._passes is not None and inspect.getgeneratorstate(self._passes) == inspect.GEN_SUSPENDED:
            self._passes.close()  # the trace goes on the record now, not when the iterator is collected
        return False

    # ---- from the first item to the last

    def _passes_over_all(self) -> Passes:
        self._record.open.append(self)
        items, start = self._items, self._moment_before(self.site.state)
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
            items, start = items.rest(), self._moment_before((*self.site.state, *self.site.last))
        self._record.open.remove(self)

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

    def _passes_to_plan(self, items: Items, start: Moment) -> Generator[Any, None, LoopPlan | Peel]:
        roles: dict[Key, Role] = {}
        for _ in range(budgets.TRIAL_PASSES):
            plan = LoopPlan(start, roles)
            found = yield from self._pass_off_the_record(items, plan)
            if isinstance(found, Peel):
                return found
            if found.keys() == roles.keys() and all(found[key] is role for key, role in roles.items()):
                plan.require_own_memory()
                return LoopPlan(start, roles)  # anew: what this one has made is off the record, too
            roles = found
        raise LoopError(f"what a loop carries differs from step to step: {self.site.place}")

    def _pass_off_the_record(self, items: Items, plan: LoopPlan) -> Generator[Any, None, dict[Key, Role] | Peel]:
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
                found = plan.roles_after(before, self._scope.read(), self.site.last)
                if isinstance(found, Peel):
                    return found
                paths.append(found)
                exploration.give(())
        if _asks_for_the_first(exploration, begun.index):
            return Peel("what the first step alone decides")
        return merged(paths)

    def _run_of_body(self, items: Items, begun: Begun, may_fail: Callable[[Exception], bool]) -> Passes:
        """One run of the body, which may end in a failure."""
        opened, restore_calls = len(self._record.open), loop_trace.calls_kept()
        self._failure, self._may_fail = None, may_fail
        yield items.item(begun.index, iter(begun.slices))
        self._may_fail = None
        if self._failure is not None:
            del self._record.open[opened:]
            restore_calls()

    # ---- the pass for the trace

    def _pass_on_the_record(self, items: Items, plan: LoopPlan) -> Passes:
        exploration = explore()
        begun = _marks_begun(items, plan)
        for _ in exploration:
            before = self._scope.write(plan.given(begun))
            yield from self._run_of_body(items, begun, partial(_is_refused, exploration))
            if self._failure is not None:
                continue
            after = self._scope.read()
            found = plan.roles_after(before, after, self.site.last)
            if isinstance(found, Peel):
                raise self._error_of(found)
            exploration.give((plan.carried(after), plan.collected(after)))
        self._scope.write(plan.after_loop(items.count, begun, after, *exploration.joined()))
        self._tell_what_became("kept as Loop" if plan.growing else "kept as Scan")

    def _tell_what_became(self, end: str) -> None:
        if not loop_trace.is_off_the_record():
            self._record.used(f"loop over `{self.site.text}` {end}: {self.site.place}")


def _is_final(error: Exception) -> bool:
    """Whether an error speaks of the whole trace and not of one step."""
    return isinstance(error, AnyshapeError) and (not isinstance(error, LoopError) or isinstance(error, LeftEarlyError))


def _is_refused(exploration: Exploration, error: Exception) -> bool:
    """Whether the model itself refuses on this path, so that no file has to serve it."""
    if isinstance(error, NameError | TypeError | AttributeError):
        return False  # rather something that only an earlier step would have made
    traceback = error.__traceback__
    try:
        exploration.fail(error)
    except Exception:  # noqa: BLE001  it gives the error back
        error.__traceback__ = traceback
        return False
    return True


def _marks_begun(items: Items, plan: LoopPlan) -> Begun:
    return loop_trace.begin(items.count, [slot.initial for slot in plan.slots], items.sequences, plan.growing)


def _asks_for_the_first(exploration: Exploration, index: Any) -> bool:
    """Whether the body has decided by a condition on the step alone that the first step answers in its own way."""
    symbol = expression_of(index)
    return any(_is_of_the_first(one, symbol) for one in exploration.decisions if one.free_symbols == {symbol})


def _is_of_the_first(condition: sympy.Basic, symbol: sympy.Basic) -> bool:
    first, *others = [condition.subs(symbol, step) for step in range(8)]
    return all(other == others[0] for other in others) and first != others[0]
