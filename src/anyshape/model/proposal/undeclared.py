"""Nothing was declared: dims from several calls, from `make_inputs`, or from one call by asking the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyshape.declaration.calls import Signature
from anyshape.declaration.targets import Target
from anyshape.model.proposal import one_call, several_calls, undeclared_from_make_inputs
from anyshape.model.proposal.proposal import Proposal


def propose(
    target: Target,
    calls: Sequence[Signature],
    make_inputs: Callable[..., Any] | None = None,
    known: Mapping[str, int] | None = None,
) -> Proposal:
    """The declaration that stands in for the user's own; its first note says where it comes from."""
    if len(calls) > 1:
        found, source = several_calls.propose(target, calls), f"dims were found from {len(calls)} calls"
    elif make_inputs is not None and known:
        found, source = (
            undeclared_from_make_inputs.propose(target, make_inputs, known),
            "dims are the parameters of make_inputs",
        )
    else:
        found, source = one_call.propose(target, calls[0]), "nothing was declared: dims were found by probing"
    return replace(found, notes=(f"{source}; declare dims= to say otherwise", *found.notes))
