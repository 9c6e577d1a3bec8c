"""Why a dim cannot vary: every expression that makes it a number, at its cause, with an edit that was tried.

A tracked run gives the causes, PyTorch itself says which of them matter: only what fails at another size, or is given
away by the example's own sizes, is told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from anyshape._torch import tracking
from anyshape.conversion import tracing
from anyshape.conversion.repairs import REPAIRS, applied
from anyshape.declaration.calls import Adapter
from anyshape.diagnosis.blame import Blame, Cause
from anyshape.diagnosis.findings import Finding
from anyshape.diagnosis.freezing import frozen
from anyshape.diagnosis.proposals import Knowledge, Proposal, proposals
from anyshape.diagnosis.telling import Suspect, finding_of
from anyshape.diagnosis.trials import Trials, in_place
from anyshape.survey import Ground
from anyshape.verification.reference import Reference

Sizes = dict[str, int]


@dataclass(frozen=True)
class _Seen:
    """What a tracked run shows."""

    causes: list[Cause]
    known: Knowledge


_ROUNDS = 4
"""A number hides those behind it, so the model is looked at again with what was found in place."""


class Diagnosis:
    """The model at the example's sizes: what pins its dims, and what may be written instead."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.base = dict(ground.start)
        self._ranges = ground.request.spec.ranges
        self._trials = Trials(ground.reference, ground.request.spec, self.base, ground.home)

    def findings(self) -> list[Finding]:
        """Every expression that makes a size a number, each once."""
        suspects: list[Suspect] = []
        for _ in range(_ROUNDS):
            standing = _standing(suspects)
            found = self._round(standing)
            # an edit after which its place is found again mends nothing; a loop over the size itself looks the same
            places = {_place(one.cause) for one in found if one.cause.kind != "loop"}
            suspects = [_without_proposal(one) if _place(one.cause) in places else one for one in suspects]
            known = {_place(one.cause) for one in suspects}
            suspects += [one for one in found if _place(one.cause) not in known]
            if len(_standing(suspects)) <= len(standing):
                break
        judged = [self._judged(one, suspects) for one in suspects]
        told = [finding_of(one, self.base) for one in judged if one.is_telling]
        return sorted(told, key=lambda one: (one.span.path, one.span.line, one.span.column))

    def _round(self, standing: Sequence[Proposal]) -> list[Suspect]:
        """What pins the model in which these proposals are in place."""
        with in_place(standing):
            seen = self._tracked()
            twin = self._ground.reference.forgetful() if standing else self._ground.reference
            causes = [cause for cause in seen.causes if cause.kind != "unknown" or cause.wants]
            suspects = [one for cause in causes if (one := self._suspected(cause, twin)) is not None]
            options = [proposals(one.cause, seen.known) for one in suspects]
        found: list[Suspect] = []
        for suspect, ways in zip(suspects, options, strict=True):
            beside = [*standing, *_standing(found)]
            past = (suspect.cause.seen or suspect.cause.site).span
            best = self._trials.best([one.onto(standing) for one in ways], suspect.dims, beside=beside, past=past)
            found.append(replace(suspect, proposal=best.proposals[-1] if best is not None else None))
        return found

    def _tracked(self) -> _Seen:
        """One trace at the example's sizes that commits to nothing."""
        request = self._ground.request
        inputs = request.spec.inputs(request.signature)
        leaves = tuple((name, value) for name, value in self._trials.expected.leaves.items() if name in inputs)
        names = tuple(name for name, _ in leaves)
        adapter = Adapter(request.target, request.signature, names)
        with tracking.tracking() as (track, recorder), applied(REPAIRS), contextlib.suppress(Exception):
            # what was seen until it failed is what there is
            tracing.trace(tracking.Tracked(adapter, track), leaves, request.spec, strict=False)
        self._ground.reference.put_back()
        blame = Blame(track, tracing.meaning_of(recorder, names, request.spec), names)
        held = {id(tensor): name for name, tensor in (*adapter.named_parameters(), *adapter.named_buffers())}
        known = Knowledge(blame.expression_of, self.base, lambda tensor: held.get(id(tensor)), track.maker_of)
        return _Seen([*blame.causes(), *frozen(track, blame.expression_of, self.base)], known)

    # ---- which causes matter

    def _suspected(self, cause: Cause, reference: Reference) -> Suspect | None:
        """A cause that PyTorch fails on at another size, with the dims that do it and the smallest such size."""
        if cause.kind in ("mean", "loop"):
            return Suspect(cause, cause.dims, {})
        dims = tuple(dim for dim in self.base if dim in cause.dims and any(self._breaking(cause, dim, reference)))
        breaking = [sizes for dim in dims for sizes in self._breaking(cause, dim, reference)]
        if not breaking:
            return None
        smallest = min(breaking, key=lambda one: sum(one.values()))
        pinned = tuple(dim for dim in dims if self._is_pinned(dim, reference))
        return Suspect(cause, pinned or dims, smallest, is_pin=bool(pinned), is_limit=self._is_limit(smallest))

    def _breaking(self, cause: Cause, dim: str, reference: Reference) -> Iterator[Sizes]:
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

    def _judged(self, suspect: Suspect, suspects: Sequence[Suspect]) -> Suspect:
        """With the edit alone where that runs as far as all of them, else with those without which it does not."""
        if suspect.proposal is None:
            return suspect
        alone = self._trials.together([suspect.proposal], suspect.dims)
        needed = _standing(suspects)
        whole = self._trials.together(needed, suspect.dims) if len(needed) > 1 else alone
        if whole is None or (alone is not None and len(alone.ran) >= len(whole.ran)):
            return replace(suspect, tried=alone)
        for other in _standing(suspects):
            fewer = [one for one in needed if one is not other]
            less = self._trials.together(fewer, suspect.dims) if other is not suspect.proposal else None
            if less is not None and len(less.ran) >= len(whole.ran):
                needed, whole = fewer, less
        return replace(suspect, tried=whole)


def _standing(suspects: Sequence[Suspect]) -> list[Proposal]:
    return [one.proposal for one in suspects if one.proposal is not None]


def _without_proposal(suspect: Suspect) -> Suspect:
    return replace(suspect, proposal=None)


def _place(cause: Cause) -> object:
    return cause.site.code.co_filename, cause.site.line, cause.kind
