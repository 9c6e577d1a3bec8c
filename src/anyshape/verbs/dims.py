"""`anyshape dims`: which axes of a call may vary, and within which sizes, as a declaration to start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.model.proposal.given_calls import read_calls
from anyshape.model.proposal.proposal import DimProposal, proposal_text, proposal_to_dict
from anyshape.model.proposal.undeclared import propose
from anyshape.model.request import first_call


@dataclass(frozen=True)
class ProposedDims:
    """A proposal, and the tensors of the call that it is for."""

    proposal: DimProposal
    leaves: tuple[str, ...]

    def __str__(self) -> str:
        return proposal_text(self.proposal, self.leaves)

    def to_dict(self) -> dict[str, Any]:
        return proposal_to_dict(self.proposal)


def propose_dims(
    model: Any,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    examples: Any = None,
    make_inputs: Callable[..., Any] | None = None,
) -> ProposedDims:
    """The dims that a model lets vary, by several calls, by `make_inputs`, or by one call."""
    target = resolve_target(model)
    known: Mapping[str, int] = {}
    if examples is not None:
        calls = read_calls(target, examples)
    elif make_inputs is not None:
        made, known = first_call(make_inputs, {}, {}, target)
        calls = (made,)
    else:
        calls = (bind_call(target, args, kwargs),)
    found = propose(target, calls, make_inputs, known)
    found = replace(found, notes=found.notes[1:])  # the first says that nothing was declared
    return ProposedDims(found, tuple(leaf.name for leaf in calls[0].leaves if leaf.is_tensor))
