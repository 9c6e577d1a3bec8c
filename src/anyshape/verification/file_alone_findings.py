"""What running a file alone has shown, as one finding."""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.model.limits import Boundaries
from anyshape.onnxfile.baked_sizes import Baked
from anyshape.results.finding import Finding, Span
from anyshape.results.verification import Check, Failure, Verification
from anyshape.verification.file_alone_subject import Subject

_MOST_EXPLAINED = 8
_MOST_BAKED = 3


def findings_of(
    verification: Verification, subject: Subject, boundaries: Boundaries, home: Span, baked: Sequence[Baked]
) -> tuple[Finding, ...]:
    """One finding: a shape that is not kept says more than a run that fails, which is then a note."""
    failures = verification.failures
    if not failures:
        return () if verification.checks else (Finding("runtime-error", "no size could be run", home),)
    failing = [failure for failure in failures if failure.rule == "runtime-error"]
    broken = [failure for failure in failures if failure.rule != "runtime-error"]
    shown = min(broken or failing, key=lambda failure: sum(failure.sizes.values()))
    message = shown.sentence if shown.output else f"the file {shown.sentence}"
    total = len(verification.checks) + len(failures)
    place = ", ".join(f"{dim} = {size}" for dim, size in shown.sizes.items())
    notes = [f"smallest of {len(broken or failing)} such sizes: {place}; {total} were run"] if place else []
    if broken and failing:
        notes.append(f"at {len(failing)} of these sizes it {failing[0].sentence}")
    notes += _where_it_runs(failing, subject, boundaries)
    notes += [f"its {one}" for one in baked if one.operator][:_MOST_BAKED]
    return (
        Finding(
            shown.rule, message, home, notes=(*notes, *_doubts(verification, subject)), helps=_helps(failing, subject)
        ),
    )


def _where_it_runs(failing: Sequence[Failure], subject: Subject, boundaries: Boundaries) -> list[str]:
    """The limits behind failing sizes, where rules are found: `height >= 7`."""
    if not failing or not isinstance(subject.judge(boundaries.base), Check):
        return []
    known = len(boundaries.limits)
    for failure in sorted(failing, key=lambda failure: sum(failure.sizes.values()))[:_MOST_EXPLAINED]:
        if boundaries.holds(failure.sizes):
            boundaries.explain(dict(failure.sizes))
    found = " and ".join(f"`{limit}`" for limit in boundaries.limits[known:])
    return [f"it runs where {found}"] if found else []


def _doubts(verification: Verification, subject: Subject) -> list[str]:
    """What a failing run does not prove."""
    if all(failure.rule == "runtime-error" for failure in verification.failures) and not verification.checks:
        return ["it fails at every size that was run; the inputs were made up, and it may need particular values"]
    if any(failure.rule == "runtime-error" for failure in verification.failures) and subject.contract is None:
        return ["the file has no contract: whether its model can do these sizes is not known"]
    return []


def _helps(failing: Sequence[Failure], subject: Subject) -> tuple[str, ...]:
    if not failing or subject.contract is not None:
        return ()
    return ("give the model to compare with, or the sizes that the file is made for",)
