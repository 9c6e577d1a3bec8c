"""Proposals on trial: the model with the changes in place, run in eager at the example's sizes and at others.

A proposal must give the same result at the example's sizes and run at others; where samples are independent, a batch
must give what its parts give. Nothing of the user's is written: only the live functions run other code for a moment.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from anyshape.declaration.spec import Spec
from anyshape.diagnosis.edit_proposals.change import EditProposal
from anyshape.diagnosis.mixed_batch import mixed_samples
from anyshape.errors import AnyshapeError
from anyshape.model.oracle import Outcome, Reference
from anyshape.sizes.notation import Sizes
from anyshape.source.edits import Edit
from anyshape.source.live_code import edited
from anyshape.source.spans import Span, span_of_error

_FEWEST = 2
"""So many other sizes must run, where so many are declared."""


@dataclass(frozen=True)
class TriedEdits:
    """Proposals that gave the same result at the example's sizes, and where else they ran; the last was on trial."""

    proposals: tuple[EditProposal, ...]
    ran: tuple[Sizes, ...]
    keeps_samples_apart: bool = True
    passes: bool = True
    """Whether the model runs at other sizes."""
    comes_further: bool = True
    """Whether it fails elsewhere than before, if it fails."""
    outcomes: tuple[Outcome, ...] = field(default=(), compare=False, repr=False)
    differs_at: Sizes | None = None
    """Where the untouched model gives another result, or none."""


class EditTrials:
    """Runs the model with changes in place."""

    def __init__(self, reference: Reference, spec: Spec, base: Mapping[str, int], home: Span) -> None:
        self.reference = reference
        self._spec = spec
        self._home = home
        self.base = dict(base)
        self.expected = reference.run(base)
        self._known: dict[object, list[Outcome]] = {}
        self._kept: list[Sequence[EditProposal]] = []

    @functools.cached_property
    def _mixes(self) -> bool:
        """Whether the untouched model mixes samples already, as far as it runs on parts of a batch."""
        return bool(mixed_samples(self.reference, self._spec, self.base, self._home))

    def ranked(
        self, proposals: Iterable[EditProposal], dims: Sequence[str], *, beside: Sequence[EditProposal] = (), past: Span
    ) -> list[TriedEdits]:
        """The proposals that keep the result, those that come furthest first.

        It ends with the first that runs at all other sizes. Other proposals may stand `beside` it. To come further
        means to fail elsewhere than at `past`.
        """
        others = self.others(dims)
        found: list[TriedEdits] = []
        for proposal in proposals:
            tried = self._trial_of((*beside, proposal), others, past)
            found += [tried] if tried is not None else []
            if tried is not None and tried.passes and tried.keeps_samples_apart and len(tried.ran) == len(others):
                break
        return sorted(found, key=_rank, reverse=True)

    def runs(self, proposals: Sequence[EditProposal], sizes: Sizes) -> bool:
        """Whether the model runs there with these in place."""
        with contextlib.suppress(AnyshapeError), in_place(proposals):
            return self.reference.forgetful().run(sizes).runs
        return False

    def together(self, proposals: Sequence[EditProposal], dims: Sequence[str]) -> TriedEdits | None:
        """Whether the model runs at other sizes with just these proposals in place."""
        tried = self._trial_of(proposals, self.others(dims), self._home)
        return tried if tried is not None and tried.passes else None

    def _trial_of(self, proposals: Sequence[EditProposal], others: Sequence[Sizes], past: Span) -> TriedEdits | None:
        """The last of the proposals beside the others, against the others alone; None if the result is another."""
        before = self._outcomes_with(proposals[:-1], others)
        with contextlib.suppress(AnyshapeError), in_place(proposals):
            twin = self.reference.forgetful()
            if not _agree(self.expected, twin.run(self.base)):
                return None
            outcomes = [twin.run(sizes) for sizes in others]
            tried = TriedEdits(tuple(proposals), tuple(dict(one.sizes) for one in outcomes if one.runs))
            if len(tried.ran) >= min(_FEWEST, len(others)) and _is_progress(before, outcomes):
                apart = self._mixes or not mixed_samples(twin, self._spec, self.base, self._home)
                differs_at = self._first_difference(outcomes)
                return replace(tried, keeps_samples_apart=apart, outcomes=tuple(outcomes), differs_at=differs_at)
            places = [span_of_error(outcome.error) for outcome in outcomes if outcome.error is not None]
            comes_further = any(place is not None and not _is_at(place, past) for place in places)
            return replace(tried, passes=False, comes_further=comes_further and _is_progress(before, outcomes))
        return None

    def _outcomes_with(self, proposals: Sequence[EditProposal], others: Sequence[Sizes]) -> list[Outcome]:
        """What the model does with these in place; remembered, since many are tried beside them."""
        key = (tuple(id(one) for one in proposals), tuple(tuple(one.items()) for one in others))
        if key not in self._known:
            with contextlib.suppress(AnyshapeError), in_place(proposals):
                twin = self.reference.forgetful() if proposals else self.reference
                self._known[key] = [twin.run(sizes) for sizes in others]
                self._kept.append(proposals)  # so that no other gets its id
        return self._known.get(key, [])

    def _first_difference(self, outcomes: Iterable[Outcome]) -> Sizes | None:
        """Where the untouched model does not give what the changed one gives."""
        differing = (dict(one.sizes) for one in outcomes if one.runs and not _agree(one, self.reference.run(one.sizes)))
        return next(differing, None)

    def others(self, dims: Sequence[str]) -> list[Sizes]:
        """Other sizes of these dims: each by itself, then all at once."""
        ranges = self._spec.ranges
        alone = [{**self.base, dim: size} for dim in dims for size in _nearby(self.base[dim]) if size in ranges[dim]]
        together = [
            {**self.base, **{dim: move(self.base[dim]) + place for place, dim in enumerate(dims)}}
            for move in (lambda _: 1, lambda n: n + 1, lambda n: 2 * n)
        ]
        inside = [s for s in together if len(dims) > 1 and all(n in ranges[dim] for dim, n in s.items())]
        return [sizes for sizes in (*alone, *inside) if sizes != self.base]


@contextlib.contextmanager
def in_place(proposals: Sequence[EditProposal]) -> Iterator[None]:
    """Inside, the model runs with these changes."""
    files: dict[str, list[EditProposal]] = {}
    for proposal in proposals:
        files.setdefault(proposal.filename, []).append(proposal)
    with contextlib.ExitStack() as stack:
        for filename, together in files.items():
            stack.enter_context(edited(filename, edit_of(*together).source))
        yield


def edit_of(*proposals: EditProposal, tried: str = "", safe: bool = True) -> Edit:
    """The changes of proposals in one file as one edit."""
    changes = tuple(dict.fromkeys(change for proposal in proposals for change in proposal.changes))
    title = "; ".join(dict.fromkeys(proposal.title for proposal in proposals))
    first, safe = proposals[0], safe and all(one.safe for one in proposals)
    return Edit(first.filename, first.text, changes, title, tried, safe)


def _nearby(size: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys((1, 2, max(size - 1, 1), size + 1, size + 2, 2 * size)))


def _is_progress(before: Sequence[Outcome], after: Sequence[Outcome]) -> bool:
    """Whether every size that ran still runs, and something is otherwise: one more runs, or gives or says another."""
    pairs = list(zip(before, after, strict=bool(before)))
    if any(old.runs and not new.runs for old, new in pairs):
        return False
    return not before or any(not _is_same_outcome(old, new) for old, new in pairs)


def _is_same_outcome(old: Outcome, new: Outcome) -> bool:
    if old.runs or new.runs:
        return _agree(old, new)
    return _failing_line(old) == _failing_line(new)


def _failing_line(outcome: Outcome) -> object:
    """Where a call failed, by its line: an edit on the line moves the columns."""
    span = span_of_error(outcome.error) if outcome.error is not None else None
    return None if span is None else (span.path, span.line, str(outcome.error))


def _rank(tried: TriedEdits) -> tuple[bool, bool, int, bool]:
    return tried.passes, tried.comes_further, len(tried.ran), tried.keeps_samples_apart


def reaches(one: TriedEdits, other: TriedEdits) -> bool:
    """Whether a trial ran wherever another ran, with the same results."""
    results = {tuple(outcome.sizes.items()): outcome for outcome in one.outcomes}
    return all(_agree(outcome, results[tuple(outcome.sizes.items())]) for outcome in other.outcomes if outcome.runs)


def _is_at(place: Span, other: Span) -> bool:
    return (place.path, place.line, place.column) == (other.path, other.line, other.column)


def _agree(expected: Outcome, found: Outcome) -> bool:
    is_whole = expected.runs and found.runs and len(found.outputs) == len(expected.outputs)
    return is_whole and all(map(_is_close, expected.outputs, found.outputs))


def _is_close(one: torch.Tensor, other: torch.Tensor) -> bool:
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
