"""What `anyshape dims` finds: the call of the target's file or options, and the dims proposed for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from anyshape.cli.target_calls import Call
from anyshape.declaration.calls import Signature, bind_call
from anyshape.declaration.targets import Target, resolve_target
from anyshape.model.proposal.given_calls_given_calls import read_calls
from anyshape.model.proposal.proposal import Proposal
from anyshape.model.proposal.proposal_proposals import proposal_text, proposal_to_dict
from anyshape.model.proposal.undeclared import propose
from anyshape.model.request_first_calls import first_call


@dataclass(frozen=True)
class Proposed:
    """A proposal, and the tensors of the call that it is for."""

    proposal: Proposal
    leaves: tuple[str, ...]

    def __str__(self) -> str:
        return proposal_text(self.proposal, self.leaves)

    def to_dict(self) -> dict[str, Any]:
        return proposal_to_dict(self.proposal)


def proposed(model: Any, call: Call) -> Proposed:
    """The dims that a model's call lets vary; whatever the call declares itself is not looked at."""
    target = resolve_target(model)
    calls, known = _calls(target, call)
    found = propose(target, calls, call.make_inputs, known)
    found = replace(found, notes=found.notes[1:])  # the first says that nothing was declared
    return Proposed(found, tuple(leaf.name for leaf in calls[0].leaves if leaf.is_tensor))


def _calls(target: Target, call: Call) -> tuple[tuple[Signature, ...], Mapping[str, int]]:
    if call.examples is not None:
        return read_calls(target, call.examples), {}
    if call.make_inputs is not None:
        made, known = first_call(call.make_inputs, {}, {}, target)
        return (made,), known
    return (bind_call(target, call.args, call.kwargs),), {}
