"""Dims with bounds that hold for all of them at once: what breaks the others is left out, and it is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from torch import nn

from anyshape.model.kept_state_tables import table_lengths
from anyshape.model.proposal.bounds import note_of_a_relation, note_of_common_bound, note_of_joint_failure
from anyshape.model.proposal.bounds_bounds import Bounded, find_bounds, hold_together, unbounded
from anyshape.model.proposal.bounds_joint import failing_rounds, find_breaking
from anyshape.model.proposal.bounds_trials import SpentError, Trials
from anyshape.model.proposal.layout import Dim


@dataclass
class Limited:
    """Dims with their bounds, and what is to be said about them."""

    dims: list[Bounded]
    notes: list[str] = field(default_factory=list)


def limited(trials: Trials, dims: Sequence[Dim], names: Sequence[str], module: nn.Module, *, seed: int) -> Limited:
    """The dims that run together, each from its smallest size to its largest."""
    found = Limited([unbounded(dim, name) for dim, name in zip(dims, names, strict=True)])
    stages: tuple[tuple[str, Callable[[], None]], ...] = (
        ("all bounds were known", lambda: _bound(found, trials, module)),
        ("all dims were tried together", lambda: _leave_out_breaking(found, trials, seed)),
        ("all bounds were tried together", lambda: _release_common_bounds(found, trials)),
    )
    for what, stage in stages:
        try:
            stage()
        except SpentError:
            found.notes.append(f"the search ended before {what}")
            break
    return found


def _bound(found: Limited, trials: Trials, module: nn.Module) -> None:
    tables = table_lengths(module, least_axes=2)
    for number, one in enumerate(found.dims):
        found.dims[number] = find_bounds(trials, one.dim, one.name, tables)


def _leave_out_breaking(found: Limited, trials: Trials, seed: int) -> None:
    failing = failing_rounds(found.dims, trials.runs, seed=seed)
    while (breaking := find_breaking(found.dims, failing, trials)) is not None:
        found.dims.remove(breaking)
        found.notes.append(note_of_joint_failure(breaking.dim))
        failing = failing_rounds(found.dims, trials.runs, seed=seed)
    if failing:
        found.notes.append(note_of_a_relation(failing[0]))
        found.dims = [_released(one) for one in found.dims]


def _released(one: Bounded) -> Bounded:
    """Without the bounds that hold only where the others stand."""
    return replace(one, hi=None, lo=min(one.lo, unbounded(one.dim, one.name).lo))


def _release_common_bounds(found: Limited, trials: Trials) -> None:
    """Two lengths that fill one table have no bounds of their own."""
    if not hold_together(trials, found.dims):
        found.notes.append(note_of_common_bound([(one.name, one.hi) for one in found.dims if one.hi is not None]))
        found.dims = [replace(one, hi=None) for one in found.dims]
