"""Why a dim cannot vary: every expression that makes it a number, at its cause, with an edit that was tried.

A tracked run gives the causes, PyTorch itself says which of them matter: only what fails at another size, or is given
away by the example's own sizes, is told.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anyshape.bench.batches import batch_dims
from anyshape.conversion import torch_export
from anyshape.conversion.operators.repair import applied
from anyshape.conversion.operators.table import REPAIRS
from anyshape.declaration.outputs import Adapter
from anyshape.diagnosis import open_trace
from anyshape.diagnosis.causes import Blame, Cause
from anyshape.diagnosis.edit_proposals import proposals
from anyshape.diagnosis.edit_proposals.change import EditProposal, Knowledge, moved_back
from anyshape.diagnosis.edit_trials import EditTrials, in_place, reaches
from anyshape.diagnosis.frozen_sizes import frozen
from anyshape.diagnosis.mixed_batch import mixed_samples
from anyshape.diagnosis.pinned_wording import FROZEN, SuspectedCause, finding_of
from anyshape.errors import AnyshapeError
from anyshape.model.oracle import Reference
from anyshape.model.survey import Survey
from anyshape.results.finding import Finding
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes


@dataclass(frozen=True)
class _Seen:
    """What a tracked run shows."""

    causes: list[Cause]
    known: Knowledge


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
            suspects = [_without_proposal(one) if _identity(one) in places else one for one in suspects]
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

    def _mixing_findings(self, told: Sequence[Finding], standing: Sequence[EditProposal]) -> list[Finding]:
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

    def _suspects_beside(self, standing: Sequence[EditProposal]) -> list[SuspectedCause]:
        """What pins the model in which these proposals are in place."""
        with in_place(standing):
            seen = self._seen_in_a_trace()
            twin = self._ground.reference.forgetful() if standing else self._ground.reference
            causes = [cause for cause in seen.causes if cause.kind != "unknown" or cause.wants]
            suspects = [one for cause in causes if (one := self._suspect_of(cause, twin)) is not None]
            suspects = [replace(one, span=moved_back(one.cause.site.span, standing)) for one in suspects]
            options = [proposals(one.cause, seen.known, many=one.is_pin) for one in suspects]
        return self._with_proposals(suspects, [[one.onto(standing) for one in ways] for ways in options], standing)

    def _with_proposals(
        self,
        suspects: Sequence[SuspectedCause],
        options: Sequence[Sequence[EditProposal]],
        standing: Sequence[EditProposal],
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
        self,
        suspects: list[SuspectedCause],
        stuck: Mapping[int, Sequence[EditProposal]],
        standing: Sequence[EditProposal],
    ) -> list[SuspectedCause]:
        """Several suspects of which none alone comes further, such as both states of an LSTM."""
        dims = tuple(dim for dim in self.base if any(dim in suspects[index].dims for index in stuck))
        beside = [*standing, *_proposals_of(suspects)]
        for chosen in itertools.islice(itertools.product(*stuck.values()), _MOST_TOGETHER):
            if self._trials.together([*beside, *chosen], dims) is not None:
                freed = dict(zip(stuck, chosen, strict=True))
                return [replace(one, proposal=freed.get(i, one.proposal)) for i, one in enumerate(suspects)]
        return suspects

    def _seen_in_a_trace(self) -> _Seen:
        """One trace at the example's sizes that commits to nothing."""
        request = self._ground.request
        inputs = request.spec.inputs(request.signature)
        leaves = tuple((name, value) for name, value in self._trials.expected.leaves.items() if name in inputs)
        names = tuple(name for name, _ in leaves)
        adapter = Adapter(request.target, request.signature, names)
        with open_trace.tracking() as (track, recorder), applied(REPAIRS), contextlib.suppress(Exception):
            # what was seen until it failed is what there is
            torch_export.trace(open_trace.Tracked(adapter, track), leaves, request.spec)
        self._ground.reference.put_back()
        blame = Blame(track, torch_export.meaning_of(recorder, names, request.spec), names)
        held = {id(tensor): name for name, tensor in open_trace.held_tensors(adapter)}
        batches = frozenset(batch_dims(request.spec.dims, request.spec.axes.values()))
        known = Knowledge(blame.expression_of, self.base, lambda one: held.get(id(one)), batches, track.maker_of)
        return _Seen([*blame.causes(), *frozen(track, blame.expression_of, self.base)], known)

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


def _without_proposal(suspect: SuspectedCause) -> SuspectedCause:
    return replace(suspect, proposal=None)


def _place_in_text(finding: Finding) -> tuple[str, int, int]:
    return finding.span.path, finding.span.line, finding.span.column


def _identity(suspect: SuspectedCause) -> object:
    """Where it stands in the text as it was, whatever was put in place since."""
    span = suspect.span or suspect.cause.site.span
    return span.path, span.line, span.column, span.end_line, span.end_column, suspect.cause.kind
