"""What one trace that commits to nothing shows of a small model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from anyshape.diagnosis.causes import Cause
from anyshape.diagnosis.edit_proposals.change import EditProposal, Knowledge
from anyshape.diagnosis.pinned_dims import Diagnosis
from anyshape.source.sites import read
from tests.surveys import survey_of


def seen_in(model: nn.Module, args: tuple[Any, ...], dims: Mapping[str, str]) -> tuple[list[Cause], Knowledge]:
    return Diagnosis(survey_of(model, args, dims))._seen_in_a_trace()


def the_text_of(cause: Cause) -> str:
    reading = read(cause.site)
    assert reading is not None
    return reading.text_of(reading.node)


def shown(proposal: EditProposal) -> str:
    """The changes, as `3 -> x.shape[0]`."""
    return "; ".join(f"{change.old} -> {change.new}" for change in proposal.changes)
