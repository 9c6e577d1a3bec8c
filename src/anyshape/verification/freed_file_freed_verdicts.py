"""What is told about one reading of a static file: right, wrong and where, or not to be known without the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from anyshape.bench.bench import Budget
from anyshape.bench.plan import Tier
from anyshape.errors import AnyshapeError, first_line
from anyshape.freeing.records import Freed
from anyshape.freeing.wanted import Declaration
from anyshape.onnxfile.interface import Interface
from anyshape.results.finding import Finding, Span
from anyshape.results.result import Result, Verdict
from anyshape.results.verification import Failure, Verification
from anyshape.sizes.notation import SizeRange
from anyshape.verification.freed_file import FileCheck, Scope, check_against_file
from anyshape.verification.static_twin import Pair, run_dynamic

SECONDS = 10.0
"""How long each reading of a file is checked, unless the user says otherwise."""


@dataclass(frozen=True)
class Wishes:
    """How to check, as the user asked for it."""

    unchecked: tuple[str, ...] = ()
    seconds: float = SECONDS
    tier: Tier = "normal"
    seed: int = 0
    against_model: Callable[[Path], Result] | None = None
    """Checks a file against its PyTorch model."""
    tell: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Subject:
    """A static file that is to be made dynamic, and how."""

    path: Path
    proto: onnx.ModelProto
    interface: Interface
    declaration: Declaration
    wishes: Wishes

    @property
    def home(self) -> Span:
        return Span(self.path.name, 1)


@dataclass(frozen=True)
class Trial:
    """One reading of a file, freed, written to the stage and checked."""

    freed: Freed | None = None
    findings: tuple[Finding, ...] = ()
    """Why it is refused."""
    verification: Verification | None = None
    verdict: Verdict = "refused"
    ranges: Mapping[str, SizeRange] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_settled: bool = False
    """Whether no other reading could help."""


def judged(subject: Subject, trial: Trial, pair: Pair, path: Path) -> Trial:
    """The reading that lies at `path` with its findings, or with its verdict and what is to be told."""
    wishes = subject.wishes
    wishes.tell(f"checking {', '.join(f'`{dim}`' for dim in pair.sizes)}")
    if wishes.against_model is not None:
        return _against_model(subject, trial, pair, path)
    scope = Scope(trial.ranges, wishes.tier, Budget(wishes.seconds))
    done = check_against_file(pair, scope)
    verification = replace(
        done.verification,
        against=subject.path.name,
        how={report.dim: report.sentence for report in done.reports},
    )
    trial = replace(trial, verification=verification)
    if verification.failures:
        return replace(trial, findings=(_wrong(verification.failures[0], subject),))
    open_dims = [report for report in done.unchecked if report.dim not in wishes.unchecked]
    if open_dims:
        findings = tuple(_unchecked(report.dim, report.left, subject) for report in open_dims)
        return replace(trial, findings=findings, is_settled=True)
    verdict: Verdict = "unchecked" if done.unchecked else "checked"
    return replace(trial, verdict=verdict, notes=(*_notes(done), *_beyond(pair, trial)))


def _against_model(subject: Subject, trial: Trial, pair: Pair, path: Path) -> Trial:
    assert subject.wishes.against_model is not None
    pair.static.rest()
    pair.dynamic.rest()
    result = subject.wishes.against_model(path)
    trial = replace(trial, verification=result.verification, notes=result.notes)
    if result.verdict == "refused":
        return replace(trial, findings=result.findings)
    return replace(trial, verdict="checked", notes=(*result.notes, *_beyond(pair, trial)))


def _wrong(failure: Failure, subject: Subject) -> Finding:
    place = ", ".join(f"{dim} = {size}" for dim, size in failure.sizes.items())
    message = failure.sentence if failure.output else f"the freed file {failure.sentence}"
    moved = tuple(dim for dim, size in failure.sizes.items() if size != subject.declaration.sizes[dim])
    note = "it was compared with what the static file gives" if failure.rule.startswith("wrong") else ""
    return Finding(
        failure.rule, f"{message} at {place}", subject.home, notes=(note,) if note else (), dims=moved, origin="export",
        breaks_at=failure.sizes,
    )  # fmt: skip


def _unchecked(dim: str, outputs: Sequence[str], subject: Subject) -> Finding:
    """No check applies: the static file says nothing about other sizes of this dim."""
    named = ", ".join(f"`{name}`" for name in outputs)
    return Finding(
        "unchecked-dim",
        f"nothing in the file tells whether other sizes of `{dim}` are right",
        subject.home,
        notes=(f"{named}: what stands at one place depends on too many others along `{dim}`, as control runs show",),
        helps=(
            "check against the model: `--model FILE.py:NAME`, in Python `model=`",
            f'or write the file unchecked: `--unchecked {dim}`, in Python `unchecked=["{dim}"]`',
        ),
        dims=(dim,),
    )


def _notes(done: FileCheck) -> Iterator[str]:
    for report in done.unchecked:
        named = ", ".join(f"`{name}`" for name in report.left)
        yield f"other sizes of `{report.dim}` are UNCHECKED: nothing was compared with {named}"
        for failure in report.fails[:1]:
            yield f"at {report.dim} = {failure.sizes[report.dim]} the file {failure.sentence}"


def _beyond(pair: Pair, trial: Trial) -> Iterator[str]:
    """Just beyond a limit, the runtime must raise an error; a note where it answers instead."""
    assert trial.freed is not None
    for bound in trial.freed.bounds:
        sizes = {**pair.sizes, bound.dim: bound.most + 1}
        try:
            outcome = run_dynamic(pair, pair.feeds(sizes, 0), sizes)
        except AnyshapeError as error:
            yield f"`{bound.dim} <= {bound.most}` was not tried from beyond: {first_line(error)}"
            continue
        if not isinstance(outcome, Failure):
            yield f"at {bound.dim} = {bound.most + 1} the file gives an answer, which is not to be relied upon"
