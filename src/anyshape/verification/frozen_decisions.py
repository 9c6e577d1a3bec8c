"""Decisions on values that a file would keep as its trace met them: no size shows that, and few values do.

A trace of symbols stops at such a decision. It does not see those that the module meets only at sizes which the trace
excludes, and a trace of real tensors sees none. Every run of the module notes where its code looks into tensors; where
that is another place than at the traced sizes, values are followed there.
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
from anyshape.torchkit.recorder import TOLD
from anyshape.verification.candidate_check import Checked

Run = tuple[Sizes, int]
"""Sizes, and a content."""


def frozen(survey: Survey) -> list[Span]:
    """Where a trace of real tensors would keep one path of a decision; TorchScript's own stay in it."""
    if survey.request.target.is_scripted:
        return []
    found = survey.reference.value_decisions(survey.first) if survey.first.reads else {}
    return _places(survey, (place for place, answers in found.items() if answers != {TOLD}))


@dataclass(frozen=True)
class Frozen:
    """What a right file does not follow: decisions on values, and those that are only printed."""

    decisions: tuple[Span, ...] = ()
    notes: tuple[str, ...] = ()


def frozen_elsewhere(survey: Survey, checked: Checked) -> Frozen:
    """What the module reads at sizes that the trace's own path excludes, in one way in all runs."""
    if survey.request.target.is_scripted:
        return Frozen()
    reads, candidate = survey.reference.reads_at, checked.candidate
    # sizes at which an assumption breaks come first: behind each, the model may decide on something else
    broken = [one.breaks_at for one in checked.verification.assumptions if one.breaks_at is not None]
    checks = [check for check in checked.verification.checks if not check.values]
    checks.sort(key=lambda check: check.sizes not in broken)
    runs: list[Run] = [(check.sizes, check.content) for check in checks]
    read = read_values(survey, [run for run in ((survey.traced, 0), (survey.traced, 1)) if reads(*run)])
    # what is decided at the traced sizes, too, the trace has passed by: it would not have been made otherwise
    kept = {*(read if candidate.records_guards else ()), *(branch.span for branch in candidate.branches)}
    others = [run for run in runs if reads(*run) - reads(survey.traced)]
    beyond = [run for run in runs if not candidate.records_guards or not hold(candidate.guards, run[0])]
    read_values(survey, _reading_anew(survey, [run for run in others if run not in beyond]), read, {TOLD})
    read_values(survey, [run for run in beyond if run in others or run in _a_few(beyond, len(broken))], read)
    # where it was decided both ways, and the file was right each time, nothing is frozen
    settled: tuple[set[object], ...] = (set(), {True, False})
    doubtful = {place: one for place, one in read.items() if place not in kept and one.answers - {TOLD} not in settled}
    if doubtful and not _are_passed_by(survey, doubtful.values(), candidate.operators):
        return Frozen(tuple(_places(survey, doubtful)))
    told = _places(survey, (place for place, one in read.items() if TOLD in one.answers))
    return Frozen(
        notes=(f"values are printed or logged, which the file does not do: {in_words(told)}",) if told else ()
    )


def _reading_anew(survey: Survey, runs: Sequence[Run]) -> list[Run]:
    """Those that look where none before them did, nor the runs that were followed first."""
    reads = survey.reference.reads_at
    seen, found = {*reads(survey.traced), *reads(survey.traced, 1)}, list[Run]()
    for run in runs:
        found += [] if reads(*run) <= seen else [run]
        seen |= reads(*run)
    return found


def _a_few(runs: Sequence[Run], least: int) -> list[Run]:
    """A few of each content, and so many of the first."""
    plain, others = ([run for run in runs if bool(run[1]) is other] for other in (False, True))
    most = max(budgets.RUNS_READ_FOR_DECISIONS, least)
    return [*plain[:most], *others[: budgets.RUNS_READ_FOR_DECISIONS]]


def _places(survey: Survey, places: Iterable[Span | None]) -> list[Span]:
    return list(dict.fromkeys(place or survey.home for place in places))


def in_words(places: Iterable[Span]) -> str:
    return ", ".join(map(str, places))


@dataclass
class Read:
    """What was read at one place, and at which sizes."""

    answers: set[object] = field(default_factory=set)
    sizes: list[Sizes] = field(default_factory=list)


def read_values(
    survey: Survey, runs: Sequence[Run], before: dict[Span | None, Read] | None = None, only: set[object] | None = None
) -> dict[Span | None, Read]:
    """Where the module reads values in these runs, added to what was read before; `only` such answers."""
    read = {} if before is None else before
    for sizes, content in runs:
        run = survey.reference.run(sizes, content)
        for place, found in survey.reference.value_decisions(run).items():
            answers = found if only is None else found & only
            if not answers:
                continue
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
    most = 2 * budgets.RUNS_READ_FOR_DECISIONS
    met = {tuple(sizes.items()): sizes for one in decisions for sizes in one.sizes[:most]}
    if len(met) * sum(operators.values()) > budgets.MOST_CALLS_OF_DECISIONS:
        return False
    for sizes in met.values():
        survey.options.tell(f"tracing at {describe(sizes)}")
        found = plain_operators(make_job(survey, survey.reference.run(sizes)))
        if found is None or not found <= operators:
            return False
    return True
