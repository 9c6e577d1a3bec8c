"""Why a dim cannot vary: every expression that makes it a number, at its cause, with an edit that was tried.

A tracked run gives the causes, PyTorch itself says which of them matter: only what fails at another size, or is given
away by the example's own sizes, is told.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anyshape.conversion import torch_export
from anyshape.conversion.operators.repair import applied
from anyshape.conversion.operators.table import REPAIRS
from anyshape.declaration.calls import Adapter
from anyshape.diagnosis import open_trace
from anyshape.diagnosis.causes import Blame, Cause, frozen
from anyshape.diagnosis.edit_proposals import proposals
from anyshape.diagnosis.edit_proposals.change import EditProposal, Knowledge, moved_back
from anyshape.diagnosis.edit_trials import EditTrials, TriedEdits, edit_of, in_place, reaches
from anyshape.diagnosis.mixed_batch import mixed_samples
from anyshape.errors import AnyshapeError
from anyshape.model.oracle import Reference, describe
from anyshape.model.survey import Survey
from anyshape.results.finding import Finding
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes
from anyshape.source.edits import Edit
from anyshape.source.sites import Site
from anyshape.source.spans import Span, is_librarys
from anyshape.testbench.batches import batch_dims

FROZEN = ("mean", "loop")
"""Causes at which nothing fails."""


@dataclass(frozen=True)
class SuspectedCause:
    """A cause that matters, the dims it pins, and what may be written instead."""

    cause: Cause
    dims: tuple[str, ...]
    breaks_at: Sizes
    """The smallest sizes found at which PyTorch fails; empty where it runs."""
    is_pin: bool = False
    """Whether PyTorch fails at all other sizes of these dims."""
    is_limit: bool = False
    """Whether PyTorch fails by a rule, such as a multiple, which the file then keeps to."""
    span: Span | None = None
    """Its place, where other changes of the line moved it."""
    proposal: EditProposal | None = None
    """What may be written instead."""
    tried: TriedEdits | None = None
    """How that was tried, alone or beside others without which it does not help."""

    @property
    def is_frozen(self) -> bool:
        """Whether nothing fails, and the result is off."""
        return self.cause.kind in FROZEN

    @property
    def is_error(self) -> bool:
        return self.is_pin or (bool(self.breaks_at) and not self.is_limit)

    @property
    def is_telling(self) -> bool:
        """Numbers that only look like a size are told where putting the size there works, and matters."""
        if self.is_pin:
            return True
        return self.tried is not None and self.tried.differs_at is not None and self.cause.kind != "decision"


_Proposals = Sequence[EditProposal]
_BEST, _MOST_TOGETHER = 3, 12
"""Of suspects that only help together: how many proposals of each are tried, and how many sets of them."""


class Diagnosis:
    """The model at the example's sizes: what pins its dims, and what may be written instead."""

    def __init__(self, survey: Survey) -> None:
        self._ground = survey
        self.base = dict(survey.start)
        self._ranges = survey.request.spec.ranges
        self._trials = EditTrials(survey.reference, survey.request.spec, self.base, survey.home)

    def findings(self) -> list[Finding]:
        """Every expression that makes a size a number, each once."""
        suspects: list[SuspectedCause] = []
        found: list[SuspectedCause] = []
        for _ in range(budgets.ROUNDS_OF_DIAGNOSIS):
            standing = _proposals_of(suspects)
            found = self._suspects_beside(standing)
            # an edit after which its place is found again mends nothing; a loop over the size itself looks the same
            places = {_identity(one) for one in found if one.cause.kind != "loop"}
            suspects = [replace(one, proposal=None) if _identity(one) in places else one for one in suspects]
            # without one, what it is once the others are mended is what it is
            again = {_identity(one): one for one in found}
            suspects = [again.pop(_identity(one), one) if one.proposal is None else one for one in suspects]
            known = {_identity(one) for one in suspects}
            suspects += [one for place, one in again.items() if place not in known]
            if len(_proposals_of(suspects)) <= len(standing):
                break
        # what is gone once the others are mended was no cause of its own
        left = {_identity(one) for one in found}
        causes = [one for one in suspects if one.proposal is not None or _identity(one) in left]
        judged = [self._with_its_trial(one, causes) for one in causes]
        told = [finding_of(one, self.base) for one in judged if one.is_telling]
        return sorted((*told, *self._mixing_findings(told, _proposals_of(causes))), key=_place_in_text)

    def _mixing_findings(self, told: Sequence[Finding], standing: _Proposals) -> list[Finding]:
        """Samples that are mixed even where every number has become a size; a dim that is told is not told twice."""
        survey = self._ground
        dims = {dim for one in told for dim in one.dims}
        lines = {(one.span.path, one.span.line) for one in told}
        sizes = self.base if standing or survey.boundaries.pins else survey.traced
        with contextlib.suppress(AnyshapeError), in_place(standing):
            twin = survey.reference.forgetful() if standing else survey.reference
            found = mixed_samples(twin, survey.request.spec, sizes, survey.home)
            new = [one for one in found if (one.span.path, one.span.line) not in lines]
            return [
                replace(one, span=moved_back(one.span, standing)) for one in new if standing or not dims & {*one.dims}
            ]
        return []

    def _suspects_beside(self, standing: _Proposals) -> list[SuspectedCause]:
        """What pins the model in which these proposals are in place."""
        with in_place(standing):
            seen, known = self._seen_in_a_trace()
            twin = self._ground.reference.forgetful() if standing else self._ground.reference
            causes = [cause for cause in seen if cause.kind != "unknown" or cause.wants]
            suspects = [one for cause in causes if (one := self._suspect_of(cause, twin)) is not None]
            suspects = [replace(one, span=moved_back(one.cause.site.span, standing)) for one in suspects]
            options = [proposals(one.cause, known, many=one.is_pin) for one in suspects]
        return self._with_proposals(suspects, [[one.onto(standing) for one in ways] for ways in options], standing)

    def _with_proposals(
        self, suspects: Sequence[SuspectedCause], options: Sequence[_Proposals], standing: _Proposals
    ) -> list[SuspectedCause]:
        """Each suspect with the proposal that frees it; those that only help together are tried together at last."""
        found: list[SuspectedCause] = []
        stuck: dict[int, list[EditProposal]] = {}
        for suspect, ways in zip(suspects, options, strict=True):
            beside = [*standing, *_proposals_of(found)]
            if suspect.breaks_at and _proposals_of(found) and self._trials.runs(beside, suspect.breaks_at):
                continue  # mended by what was found before; what is left of it shows in the next round
            past = (suspect.cause.seen or suspect.cause.site).span
            ranked = self._trials.ranked(ways, suspect.dims, beside=beside, past=past)
            helps = bool(ranked) and (ranked[0].passes or ranked[0].comes_further)
            if ranked and not helps:
                stuck[len(found)] = [one.proposals[-1] for one in ranked[:_BEST]]
            found.append(replace(suspect, proposal=ranked[0].proposals[-1] if helps else None))
        return self._freed_together(found, stuck, standing) if len(stuck) > 1 else found

    def _freed_together(
        self, suspects: list[SuspectedCause], stuck: Mapping[int, _Proposals], standing: _Proposals
    ) -> list[SuspectedCause]:
        """Several suspects of which none alone comes further, such as both states of an LSTM."""
        dims = tuple(dim for dim in self.base if any(dim in suspects[index].dims for index in stuck))
        beside = [*standing, *_proposals_of(suspects)]
        for chosen in itertools.islice(itertools.product(*stuck.values()), _MOST_TOGETHER):
            if self._trials.together([*beside, *chosen], dims) is not None:
                freed = dict(zip(stuck, chosen, strict=True))
                return [replace(one, proposal=freed.get(i, one.proposal)) for i, one in enumerate(suspects)]
        return suspects

    def _seen_in_a_trace(self) -> tuple[list[Cause], Knowledge]:
        """The causes in one trace at the example's sizes that commits to nothing, and what it knows."""
        request = self._ground.request
        inputs = request.spec.inputs(request.signature)
        leaves = tuple((name, value) for name, value in self._trials.expected.leaves.items() if name in inputs)
        names = tuple(name for name, _ in leaves)
        adapter = Adapter(request.target, request.signature, names)
        with open_trace.tracking() as (track, recorder), applied(REPAIRS), contextlib.suppress(Exception):
            # what was seen until it failed is what there is
            torch_export.trace(open_trace.Tracked(adapter, track), leaves, request.spec)
        blame = Blame(track, torch_export.meaning_of(recorder, names, request.spec), names)
        held = {id(tensor): name for name, tensor in open_trace.held_tensors(adapter)}
        batches = frozenset(batch_dims(request.spec.dims, request.spec.axes.values()))
        known = Knowledge(blame.expression_of, self.base, lambda one: held.get(id(one)), batches, track.maker_of)
        return [*blame.causes(), *frozen(track, blame.expression_of, self.base)], known

    # ---- which causes matter

    def _suspect_of(self, cause: Cause, reference: Reference) -> SuspectedCause | None:
        """A cause that PyTorch fails on at another size, with the dims that do it and the smallest such size."""
        if cause.kind in FROZEN:
            return SuspectedCause(cause, cause.dims, {})
        dims = tuple(dim for dim in self.base if dim in cause.dims and any(self._breaking_sizes(cause, dim, reference)))
        breaking = [sizes for dim in dims for sizes in self._breaking_sizes(cause, dim, reference)]
        if not breaking:
            # PyTorch runs wherever one dim is moved; a number that fits the example may still be meant for a size
            splits = cause.kind == "number" and not cause.wants
            return SuspectedCause(cause, cause.dims, {}) if splits else None
        smallest = min(breaking, key=lambda one: sum(one.values()))
        pinned = tuple(dim for dim in dims if self._is_pinned(dim, reference))
        return SuspectedCause(cause, pinned or dims, smallest, is_pin=bool(pinned), is_limit=self._is_limit(smallest))

    def _breaking_sizes(self, cause: Cause, dim: str, reference: Reference) -> Iterator[Sizes]:
        """Sizes of one dim at which what is assumed does not hold, and PyTorch fails."""
        size = self.base[dim]
        for other in sorted({1, 2, 3, size - 1, size + 1, 2 * size}):
            moved = {**self.base, dim: other}
            holds = all(condition.holds(moved) for condition in cause.conditions)
            if other in self._ranges[dim] and not holds and not reference.run(moved).runs:
                yield moved

    def _is_pinned(self, dim: str, reference: Reference) -> bool:
        """Whether PyTorch fails on both sides; a bound has one, and a multiple runs further on. One broadcasts."""
        size = self.base[dim]
        sizes = [n for n in (size // 2, 2 * size, 2 * size + 1, 3 * size) if n > 1 and n != size]
        asked = [n for n in sizes if n in self._ranges[dim]]
        return bool(asked) and not any(reference.run({**self.base, dim: n}).runs for n in asked)

    def _is_limit(self, sizes: Sizes) -> bool:
        """Whether a rule is known by which PyTorch fails there."""
        boundaries = self._ground.boundaries
        return not boundaries.holds(sizes) or (not boundaries.pins and boundaries.explain(sizes))

    # ---- how far an edit reaches

    def _with_its_trial(self, suspect: SuspectedCause, suspects: Sequence[SuspectedCause]) -> SuspectedCause:
        """With the edit alone where that gives what all of them give, else with those without which it does not."""
        if suspect.proposal is None:
            return suspect
        alone = self._trials.together([suspect.proposal], suspect.dims)
        needed = _proposals_of([one for one in suspects if one is suspect or not one.is_frozen])
        whole = self._trials.together(needed, suspect.dims) if len(needed) > 1 else alone
        if whole is None or (alone is not None and reaches(alone, whole)):
            return replace(suspect, tried=alone)
        for other in [one for one in needed if one is not suspect.proposal]:
            fewer = [one for one in needed if one is not other]
            less = self._trials.together(fewer, suspect.dims)
            if less is not None and reaches(less, whole):
                needed, whole = fewer, less
        return replace(suspect, tried=whole)


def _proposals_of(suspects: Sequence[SuspectedCause]) -> list[EditProposal]:
    return [one.proposal for one in suspects if one.proposal is not None]


def _place_in_text(finding: Finding) -> tuple[str, int, int]:
    return finding.span.path, finding.span.line, finding.span.column


def _identity(suspect: SuspectedCause) -> object:
    """Where it stands in the text as it was, whatever was put in place since."""
    span = suspect.span or suspect.cause.site.span
    return span.path, span.line, span.column, span.end_line, span.end_column, suspect.cause.kind


# ---- what is told about a suspect


def finding_of(suspect: SuspectedCause, base: Mapping[str, int]) -> Finding:
    """The finding, with its edit."""
    if not suspect.is_error and suspect.proposal is not None and suspect.proposal.dims:
        suspect = replace(suspect, dims=suspect.proposal.dims)
    found = _pinned_finding(suspect, base) if suspect.is_error else _warning_about(suspect, base)
    notes = (*found.notes, *_notes_on_callers(suspect.cause.site))
    return replace(found, notes=notes, dims=suspect.dims, edit=_tried_edit(suspect, base))


def _pinned_finding(suspect: SuspectedCause, base: Mapping[str, int]) -> Finding:
    cause, dims = suspect.cause, _dims_in_words(suspect.dims)
    notes = [f"smallest size that breaks it: {describe(suspect.breaks_at)}; PyTorch fails there too"]
    if cause.seen is not None:
        notes.append(f"it shows at {cause.seen.span}")
    notes += _notes_about(cause)
    span, label = _span_of_number(suspect), _label_of_pin(cause, suspect.dims, base)
    helps = () if suspect.tried else (_way_out(cause, dims),)
    message, sizes = f"{dims} cannot vary", suspect.breaks_at
    return Finding("pinned-dim", message, span, label, tuple(notes), helps, breaks_at=sizes)


def _label_of_pin(cause: Cause, dims: Sequence[str], base: Mapping[str, int]) -> str:
    if cause.kind == "table":
        tables = [f"`{cause.table}` has {want.size} entries for `{want.expression}`" for want in cause.wants]
        return " and ".join(dict.fromkeys(tables))
    parts = [f"`{want.expression}` becomes {want.size}" for want in cause.wants]
    parts = parts or [f"`{dim}` becomes {base[dim]}" for dim in dims]
    return f"{' and '.join(dict.fromkeys(parts))} here"


def _notes_about(cause: Cause) -> Iterator[str]:
    if cause.layer:
        yield f"the architecture fixes the size: `{cause.layer}` was made for {cause.wants[0].size} features"
    if cause.kind == "input":
        yield f"input `{cause.name}` has a static axis here"


def _way_out(cause: Cause, dims: str) -> str:
    if cause.kind == "input":
        return f"declare that axis of `{cause.name}`, too, or leave {dims} out of the declaration"
    if cause.layer:
        return f"pool to a fixed size in front of `{cause.layer}`, or leave {dims} out of the declaration"
    if cause.kind == "decision":
        return f"write the model without this condition on {dims}, or leave {dims} out of the declaration"
    return f"take the size from an input instead of writing a number, or leave {dims} out of the declaration"


def _warning_about(suspect: SuspectedCause, base: Mapping[str, int]) -> Finding:
    """Nothing fails, and the result is off: a size frozen as a number, or samples that are folded into each other."""
    dims = _dims_in_words(suspect.dims)
    if suspect.is_frozen:
        want = suspect.cause.wants[0]
        what = "divides by" if suspect.cause.kind == "mean" else "counts to"
        rule, message = "frozen-value", f"the size of {dims} is written as a number"
        label = f"{what} {want.size}, which is `{want.expression}` in the example"
    else:
        rule, message = "mixed-batch", f"samples are mixed at other sizes of {dims}"
        label = f"fits {' and '.join(f'`{dim}` = {base[dim]}' for dim in suspect.dims)} alone"
    differs_at = suspect.tried.differs_at if suspect.tried else None
    told = "the result is another than with the size itself"
    notes = () if differs_at is None else (f"at {describe(differs_at)} {told}",)
    span = _span_of_number(suspect)
    return Finding(rule, message, span, label, notes, level="warning", breaks_at=differs_at)


def _span_of_number(suspect: SuspectedCause) -> Span:
    """Where the number was written, which may be further up than where it is used."""
    moved = suspect.proposal.span if suspect.proposal is not None else None
    return moved or suspect.span or suspect.cause.site.span


def _notes_on_callers(site: Site) -> Iterator[str]:
    """For a line of a library: the user's own that leads to it."""
    if not is_librarys(site.code.co_filename):
        return
    caller = site.caller
    while caller is not None and is_librarys(caller.code.co_filename):
        caller = caller.caller
    if caller is not None:
        yield f"called from {caller.span}"


def _tried_edit(suspect: SuspectedCause, base: Mapping[str, int]) -> Edit | None:
    tried = suspect.tried
    if tried is None or suspect.proposal is None:
        return None
    same = describe({dim: base[dim] for dim in suspect.dims})
    runs = _sizes_that_ran(tried, suspect.dims[0], base) if len(suspect.dims) == 1 else f"{len(tried.ran)} other sizes"
    text = f"same result at {same}, runs at {runs}"
    file = [one for one in tried.proposals if one.filename == suspect.proposal.filename]
    edit = edit_of(*file, tried=text, safe=tried.keeps_samples_apart)
    lines = sorted({change.line for change in edit.changes} - {change.line for change in suspect.proposal.changes})
    beside = f", together with line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))}" if lines else ""
    return replace(edit, title=f"{suspect.proposal.title}{beside}")


def _sizes_that_ran(tried: TriedEdits, dim: str, base: Mapping[str, int]) -> str:
    return ", ".join(str(n) for n in sorted({sizes[dim] for sizes in tried.ran} - {base[dim]}))


def _dims_in_words(dims: Sequence[str]) -> str:
    *most, last = [f"`{dim}`" for dim in dims]
    return f"{', '.join(most)} and {last}" if most else last
