"""Decisions on values that a file would keep as its trace met them: no size shows that, and few values do.

A trace of symbols stops at such a decision. It does not see those that the module meets only at sizes which the trace
excludes, and a trace of real tensors sees none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from anyshape.conversion.candidates import make_job
from anyshape.conversion.strategies import plain_operators
from anyshape.model.oracle import describe
from anyshape.model.survey import Survey
from anyshape.results.attempt import hold
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes
from anyshape.source.spans import Span
from anyshape.verification.candidate_check import Checked


def frozen(survey: Survey) -> str:
    """Where a trace of real tensors would keep one path of a decision."""
    return _places(survey, survey.reference.value_decisions(survey.first))


def frozen_elsewhere(survey: Survey, checked: Checked) -> str:
    """Where the module decides by values at sizes that the trace's own path excludes, in one way in all runs."""
    guards = checked.candidate.guards
    beyond = [check for check in checked.verification.checks if not hold(guards, check.sizes)]
    plain, others = ([check for check in beyond if bool(check.content) is other] for other in (False, True))
    if not plain:
        return ""
    plain, others = plain[: budgets.RUNS_READ_FOR_DECISIONS], others[: budgets.RUNS_READ_FOR_DECISIONS]
    read = read_values(survey, [(check.sizes, check.content) for check in (*plain, *others)])
    # what is decided at the traced sizes, too, the trace has passed by: it would not have been made otherwise
    contents = dict.fromkeys([0, *(check.content for check in others)])
    passed_by = read_values(survey, [(survey.traced, content) for content in contents]) if read else {}
    kept = {*passed_by, *(branch.span for branch in checked.candidate.branches)}
    # where it was decided both ways, and the file was right each time, nothing is frozen
    doubtful = {place: one for place, one in read.items() if place not in kept and one.answers != {True, False}}
    if not doubtful or _are_passed_by(survey, doubtful.values(), checked.candidate.operators):
        return ""
    return _places(survey, doubtful)


def _places(survey: Survey, places: Iterable[Span | None]) -> str:
    return ", ".join(dict.fromkeys(str(place or survey.home) for place in places))


@dataclass
class Read:
    """What was read at one place, and at which sizes."""

    answers: set[object] = field(default_factory=set)
    sizes: list[Sizes] = field(default_factory=list)


def read_values(survey: Survey, runs: Sequence[tuple[Sizes, int]]) -> dict[Span | None, Read]:
    """Where the module reads values in these runs, each of some sizes and a content."""
    read: dict[Span | None, Read] = {}
    for sizes, content in runs:
        run = survey.reference.run(sizes, content)
        for place, answers in survey.reference.value_decisions(run).items():
            one = read.setdefault(place, Read())
            one.answers |= answers
            one.sizes.append(sizes)
    return read


def _are_passed_by(survey: Survey, decisions: Iterable[Read], operators: Counter[str]) -> bool:
    """Whether traces at the very sizes of these decisions come through without an answer, and call nothing that the
    file's own did not: a module may leave its shortcuts out while it is exported, or write them in another way.
    """
    decisions = list(decisions)
    if not all(one.answers <= {True, False} for one in decisions):
        return False  # a number, which a trace would take as it comes
    met = {tuple(sizes.items()): sizes for one in decisions for sizes in one.sizes}
    if len(met) * sum(operators.values()) > budgets.MOST_CALLS_OF_DECISIONS:
        return False
    for sizes in met.values():
        survey.options.tell(f"tracing at {describe(sizes)}")
        found = plain_operators(make_job(survey, survey.reference.run(sizes)))
        survey.reference.put_back()
        if found is None or not found <= operators:
            return False
    return True
