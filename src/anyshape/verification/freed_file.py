"""A file that was made dynamic against the static one that it was made of: each dim by the checks that apply to it.

Which ones apply is asked of the static file by control runs, output by output. What no check covers is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from anyshape.errors import AnyshapeError, first_line
from anyshape.freeing.records import Freed
from anyshape.freeing.suspects import chosen_by_size
from anyshape.freeing.wanted import Declaration
from anyshape.onnxfile.interface import Interface
from anyshape.results.finding import Finding
from anyshape.results.result import Result, Verdict
from anyshape.results.verification import Check, Failure, Verification
from anyshape.runtime.made_up_inputs import Contents
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange, Sizes
from anyshape.sizes.spelling import spelled
from anyshape.source.spans import Span
from anyshape.testbench.checker import (
    BESIDE_ITS_STATIC_TWIN,
    Judged,
    judge_until_wrong,
    run_by_default,
    verification_of,
)
from anyshape.testbench.plan import Budget, Tier
from anyshape.verification import twin_checks
from anyshape.verification.final_file import JudgedFile
from anyshape.verification.static_twin import Pair, checker_beside_twin

# ---- what is freed, and how it is to be checked


@dataclass(frozen=True)
class FreeOptions:
    """How to check, as the user asked for it."""

    unchecked: tuple[str, ...] = ()
    seconds: float | None = None
    tier: Tier = "normal"
    seed: int = 0
    against_model: Callable[[Path], Result] | None = None
    """Checks a file against its PyTorch model."""
    tell: Callable[[str], None] = lambda _: None
    constants: Mapping[str, str] = field(default_factory=dict)
    """What the user says about numbers of the file."""


@dataclass(frozen=True)
class StaticFile:
    """A static file that is to be made dynamic, and how."""

    path: Path
    proto: onnx.ModelProto
    interface: Interface
    declaration: Declaration
    options: FreeOptions

    @property
    def home(self) -> Span:
        return Span(self.path.name, 1)


@dataclass(frozen=True)
class RunningFile:
    """A static file that runs: every axis has a size, also those that the file leaves open."""

    file: StaticFile
    session: Session
    contents: Contents


@dataclass(frozen=True)
class Trial:
    """One reading of a file, freed, written to the stage and checked."""

    freed: Freed | None = None
    findings: tuple[Finding, ...] = ()
    """Why it is refused."""
    warnings: tuple[Finding, ...] = ()
    """What is told although it is not."""
    verification: Verification | None = None
    verdict: Verdict = "refused"
    ranges: Mapping[str, SizeRange] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_settled: bool = False
    """Whether no other reading could help."""
    judged: JudgedFile | None = None


# ---- dim by dim

_COUNTS: Mapping[Tier, tuple[int, ...]] = {
    "quick": (3, 1),
    "normal": (3, 1, 2, 5),
    "thorough": (3, 1, 2, 5, 4, 7, 8, 16, 17),
}


@dataclass(frozen=True)
class DimReport:
    """How one dim was checked, and what came of it."""

    dim: str
    ways: tuple[str, ...] = ()
    outcomes: tuple[Judged, ...] = ()
    left: tuple[str, ...] = ()
    """The outputs to which no check applies."""
    fails: tuple[Failure, ...] = ()
    """Sizes at which such a file does not run; the model may not run there either."""

    @property
    def is_checked(self) -> bool:
        return not self.left and any(isinstance(one, Check) for one in self.outcomes)

    @property
    def sentence(self) -> str:
        """`1 to 10 (6 sizes), sample by sample`."""
        sizes = sorted({one.sizes[self.dim] for one in self.outcomes})
        if not sizes:
            return "not run"
        span = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
        ways = [*self.ways, *(f"never: {', '.join(f'`{name}`' for name in self.left)}" for _ in self.left[:1])]
        how = " and ".join(dict.fromkeys(ways))
        return f"{span} ({len(sizes)} size{'s' if len(sizes) > 1 else ''}), {how}"


@dataclass(frozen=True)
class FileCheck:
    """All runs of a dynamic file beside its static one."""

    verification: Verification
    reports: tuple[DimReport, ...] = ()

    @property
    def unchecked(self) -> tuple[DimReport, ...]:
        return tuple(report for report in self.reports if not report.is_checked)


@dataclass(frozen=True)
class TwinScope:
    """Which sizes may be run, and for how long."""

    ranges: Mapping[str, SizeRange]
    """What was declared, within the limits that are known."""
    tier: Tier = "normal"
    budget: Budget = field(default_factory=Budget)
    skipped: list[tuple[Sizes, str]] = field(default_factory=list)
    """What the budget cut: grows as the dims are checked."""

    def admits(self, pair: Pair, sizes: Sizes) -> bool:
        inside = all(size in self.ranges[dim] for dim, size in sizes.items() if size != pair.sizes[dim])
        return inside and min(sizes.values()) > 0 and pair.volume(sizes) <= budgets.MOST_ELEMENTS_MADE_UP

    def admitted(self, pair: Pair, dim: str, sizes: Sequence[int]) -> list[int]:
        unique = dict.fromkeys(sizes)
        return [size for size in unique if self.admits(pair, {**pair.sizes, dim: size})]

    def within_budget(self, pair: Pair, dim: str, sizes: Sequence[int]) -> list[int]:
        """The sizes that are always run, and those for which the budget lasts."""
        return [size for n, size in enumerate(sizes) if self._lasts_for(pair, {**pair.sizes, dim: size}, n)]

    def _lasts_for(self, pair: Pair, sizes: Sizes, number: int) -> bool:
        # inputs are made once, and may be by far the most of it
        effort = pair.effort(sizes).times(_RUNS_OF_A_SIZE).with_values("inputs", pair.volume(sizes))
        reason = self.budget.refuses(effort) if number >= BESIDE_ITS_STATIC_TWIN.always_run else None
        if reason is None:
            self.budget.charge(effort)
        else:
            self.skipped.append((sizes, reason))
        return reason is None


_RUNS_OF_A_SIZE = 6
"""Of both files, as they are and with what goes in moved by a rounding."""


def check_against_file(pair: Pair, scope: TwinScope) -> FileCheck:
    """Run both files; ends at the first dim that is wrong."""
    start = time.monotonic()
    checker, misplaced = checker_beside_twin(pair), twin_checks.misplaced_batch(pair)
    # at the static file's own sizes, both files give the same
    at_own = (checker.reference.run(pair.sizes, number) for number in (1, 2))
    outcomes: list[Judged] = [misplaced] if misplaced is not None else judge_until_wrong(checker, at_own)
    reports: list[DimReport] = []
    for report in _reports(pair, scope) if not _failures(outcomes) else ():
        reports.append(report)
        outcomes += report.outcomes
        if _failures(report.outcomes):
            break
    verification = verification_of(checker, outcomes, time.monotonic() - start)
    # what one check left out, another may have run
    skipped = [one for one in scope.skipped if one[0] not in [outcome.sizes for outcome in outcomes]]
    verification = run_by_default(checker, replace(verification, skipped=tuple(skipped)))
    return FileCheck(verification, tuple(reports))


def _failures(outcomes: Iterable[Judged]) -> list[Failure]:
    return [one for one in outcomes if isinstance(one, Failure)]


def _reports(pair: Pair, scope: TwinScope) -> Iterator[DimReport]:
    """Dims of independent samples come first: the others are then checked at several numbers of samples."""
    every = list(range(len(pair.interface.outputs)))
    samples = [dim for dim in pair.sizes if twin_checks.independent_outputs(pair, dim, every) == every]
    for dim in samples:
        yield _report_on(pair, scope, dim)
    grown = pair.with_samples(*samples)
    for dim in pair.sizes:
        if dim not in samples:
            yield _report_on(grown, scope, dim)


Found = Iterator[tuple[str, list[int], list[Judged]]]
"""In which way, which outputs it applies to, and what came of it."""


def _report_on(pair: Pair, scope: TwinScope, dim: str) -> DimReport:
    """Each output by the first check that applies to it."""
    left = list(range(len(pair.interface.outputs)))
    ways: list[str] = []
    outcomes: list[Judged] = []
    # from what proves the most to what proves the least; an output is left to the next where one does not apply
    for check in (_by_itself, _by_samples, _by_prefixes, _by_repeats, _by_shifts):
        for way, covered, found in check(pair, scope, dim, left) if left else ():
            ways.append(way)
            outcomes += found
            left = [index for index in left if index not in covered]
    fails: list[Failure] = []
    if left and not _failures(outcomes):
        ran = twin_checks.run_only(pair, dim, _neighbours(pair, scope, dim))
        fails = [one for one in _failures(ran) if one.rule == "runtime-error"]
        outcomes += ran if len(fails) == len(ran) else [one for one in ran if one not in fails]
    names = tuple(pair.interface.outputs[index].name for index in left)
    return DimReport(dim, tuple(ways), tuple(outcomes), names, tuple(fails))


def _by_itself(pair: Pair, scope: TwinScope, dim: str, left: list[int]) -> Found:
    """A dim that the reference leaves open, too."""
    if dim not in pair.kept:
        return
    found: list[Judged] = []
    checker = checker_beside_twin(pair)
    for size in _counts_to_run(pair, scope, dim):
        run = checker.reference.run({**pair.sizes, dim: size}, 1)
        try:
            pair.run_static(run.feeds)
        except RuntimeFailureError:  # a size that the reference does not take
            continue
        found.append(checker.judge(run.over(left)))
    if found:
        yield "by the file itself", left, found


def _by_samples(pair: Pair, scope: TwinScope, dim: str, left: list[int]) -> Found:
    if covered := twin_checks.independent_outputs(pair, dim, left):
        counts = _counts_to_run(pair, scope, dim)
        yield "sample by sample", covered, twin_checks.check_by_samples(pair, dim, counts, covered)


def _by_prefixes(pair: Pair, scope: TwinScope, dim: str, left: list[int]) -> Found:
    own = pair.sizes[dim]
    shorter = scope.within_budget(pair, dim, scope.admitted(pair, dim, (own // 2, 1, own - 1, 3, 2)))
    shorter = [length for length in shorter if length < own]
    longer = scope.admitted(pair, dim, (own + 1, 2 * own)) if _can_grow(pair, dim) else []
    for hiding in twin_checks.hidings(pair, dim) if shorter else ():
        if covered := twin_checks.hidden_outputs(pair, dim, hiding, shorter, left):
            left = [index for index in left if index not in covered]
            lengths = [*shorter, *longer]
            yield f"by {hiding}", covered, twin_checks.check_by_prefixes(pair, dim, hiding, lengths, covered)


def _can_grow(pair: Pair, dim: str) -> bool:
    """Inputs that have the dim on two axes are cut, but not joined."""
    return all(len(pair.axes(port.name, dim)) <= 1 for port in pair.contents.ports)


def _by_repeats(pair: Pair, scope: TwinScope, dim: str, left: list[int]) -> Found:
    own = pair.sizes[dim]
    sizes = scope.within_budget(pair, dim, scope.admitted(pair, dim, twin_checks.sizes_for(own)))
    if not twin_checks.periods_of(own) or not (covered := twin_checks.repeatable_outputs(pair, dim, left)):
        return
    found = twin_checks.check_by_repeats(pair, dim, sizes, covered)
    if found and not any(one.rule == "wrong-values" for one in _failures(found)):  # else a sum
        yield "by repeated places", covered, found


def _by_shifts(pair: Pair, scope: TwinScope, dim: str, left: list[int]) -> Found:
    own = pair.sizes[dim]
    steps = [step for step in twin_checks.steps_of(own) if scope.admits(pair, {**pair.sizes, dim: own - step})]
    if not steps or not _can_grow(pair, dim):
        return
    lasting = scope.within_budget(pair, dim, [own - step for step in steps])
    by_step = {step: twin_checks.reaches(pair, dim, step, left) for step in steps if own - step in lasting}
    covered = next(iter(by_step.values())).keys()
    if covered:
        known = {step: found for step, found in by_step.items() if found.keys() == covered}
        larger = scope.admitted(pair, dim, (own + steps[0], own + 2 * steps[0]))
        judged = twin_checks.check_by_shifts(pair, dim, list(known), list(known.values()), larger)
        yield "by parts from both ends", sorted(covered), judged


def _neighbours(pair: Pair, scope: TwinScope, dim: str) -> list[int]:
    own = pair.sizes[dim]
    return [size for size in scope.admitted(pair, dim, (own + 1, own - 1, 2 * own, own // 2)) if size != own]


def _counts_to_run(pair: Pair, scope: TwinScope, dim: str) -> list[int]:
    own = pair.sizes[dim]
    sizes = scope.admitted(pair, dim, (*_COUNTS[scope.tier], 2 * own, own))
    return scope.within_budget(pair, dim, sizes) or [own]


# ---- the verdict


def with_verdict(file: StaticFile, trial: Trial, pair: Pair, path: Path) -> Trial:
    """The reading that lies at `path` with its findings, or with its verdict and what is to be told."""
    options = file.options
    options.tell(f"checking {', '.join(f'`{dim}`' for dim in pair.sizes)}")
    if options.against_model is not None:
        return _against_model(file, trial, pair, path)
    scope = TwinScope(trial.ranges, options.tier, Budget(options.seconds))
    done = check_against_file(pair, scope)
    how = {report.dim: report.sentence for report in done.reports}
    verification = replace(done.verification, against=file.path.name, how=how)
    trial = replace(trial, verification=verification)
    if verification.failures:
        return replace(trial, findings=(_wrong_values(verification.failures[0], file),))
    open_dims = [report for report in done.unchecked if report.dim not in options.unchecked]
    if open_dims:
        findings = tuple(_unchecked_dim(report.dim, report.left, file) for report in open_dims)
        return replace(trial, findings=findings, is_settled=True)
    verdict: Verdict = "unchecked" if done.unchecked else "checked"
    notes = (*verification.notes, *_notes_on_unchecked(done), *_notes_from_beyond(pair, trial))
    return replace(trial, verdict=verdict, notes=notes)


def _against_model(file: StaticFile, trial: Trial, pair: Pair, path: Path) -> Trial:
    assert file.options.against_model is not None
    pair.static.rest()
    pair.dynamic.rest()
    result = file.options.against_model(path)
    trial = replace(trial, verification=result.verification, notes=result.notes)
    if result.verdict == "refused":
        return replace(trial, findings=result.findings)
    return replace(trial, verdict="checked", notes=(*result.notes, *_notes_from_beyond(pair, trial)))


def _wrong_values(failure: Failure, file: StaticFile) -> Finding:
    place = ", ".join(f"{dim} = {size}" for dim, size in failure.sizes.items())
    message = failure.sentence if failure.output else f"the freed file {failure.sentence}"
    moved = tuple(dim for dim, size in failure.sizes.items() if size != file.declaration.sizes[dim])
    note = "it was compared with what the static file gives" if failure.rule.startswith("wrong") else ""
    return Finding(
        failure.rule, f"{message} at {place}", file.home, notes=(note,) if note else (), dims=moved, origin="export",
        breaks_at=failure.sizes,
    )  # fmt: skip


def _unchecked_dim(dim: str, outputs: Sequence[str], file: StaticFile) -> Finding:
    """No check applies: the static file says nothing about other sizes of this dim."""
    named, frozen = ", ".join(f"`{name}`" for name in outputs), file.declaration.frozen_sizes
    return Finding(
        "unchecked-dim",
        f"nothing in the file tells whether other sizes of `{dim}` are right",
        file.home,
        notes=(
            f"{named}: what stands at one place depends on too many others along `{dim}`, as control runs show",
            *(told for one, told in chosen_by_size(file.proto, frozen, "AveragePool", "MaxPool") if one == dim),
        ),
        helps=(
            f"check against the model: {spelled('`model=`', '`--model FILE.py:NAME`')}",
            "or write the file unchecked: " + spelled(f'`unchecked=["{dim}"]`', f"`--unchecked {dim}`"),
        ),
        dims=(dim,),
    )


def _notes_on_unchecked(done: FileCheck) -> Iterator[str]:
    for report in done.unchecked:
        named = ", ".join(f"`{name}`" for name in report.left)
        yield f"other sizes of `{report.dim}` are UNCHECKED: nothing was compared with {named}"
        for failure in report.fails[:1]:
            yield f"at {report.dim} = {failure.sizes[report.dim]} the file {failure.sentence}"


def _notes_from_beyond(pair: Pair, trial: Trial) -> Iterator[str]:
    """Just beyond a limit, the runtime must raise an error; a note where it answers instead."""
    assert trial.freed is not None
    checker = checker_beside_twin(pair)
    for bound in trial.freed.bounds:
        sizes = {**pair.sizes, bound.dim: bound.most + 1}
        try:
            outcome = checker.results(checker.reference.run(sizes, 0))
        except AnyshapeError as error:
            yield f"`{bound.dim} <= {bound.most}` was not tried from beyond: {first_line(error)}"
            continue
        if not isinstance(outcome, Failure):
            yield f"at {bound.dim} = {bound.most + 1} the file gives an answer, which is not to be relied upon"
