"""What could be written instead: changes to try for one cause, the most likely first. None is shown untried."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping

from anyshape.diagnosis.causes import Cause
from anyshape.diagnosis.edit_proposals.change import EditProposal, Knowledge, moved_back
from anyshape.diagnosis.edit_proposals.single_places import of_asserts, of_pooling, of_slices
from anyshape.diagnosis.edit_proposals.sizes_for_numbers import of_loops, of_sizes, of_wants
from anyshape.source.sites import SourceReading, read

__all__ = ["EditProposal", "Knowledge", "moved_back", "proposals"]

_MOST, _FEW = 40, 8
_Maker = Callable[[Cause, SourceReading, Knowledge], Iterable[EditProposal]]
_MAKERS: Mapping[str, tuple[_Maker, ...]] = {
    "number": (of_wants, of_sizes, of_pooling),
    "table": (of_slices, of_pooling),
    "decision": (of_asserts,),
    "mean": (of_wants,),
    "loop": (of_loops,),
}
"""What to try for each kind of cause, in order."""


def proposals(cause: Cause, known: Knowledge, *, many: bool = True) -> list[EditProposal]:
    """What to try for a cause; empty where nothing is known or the code has no source.

    Few where the model may be healthy: a number that happens to be a multiple of a size is none of them.
    """
    reading = read(cause.site)
    if reading is None:
        return []
    makers = _MAKERS.get(cause.kind, ())
    made = itertools.chain.from_iterable(make(cause, reading, known) for make in makers)
    different: dict[object, EditProposal] = {}
    for proposal in itertools.islice(made, 4 * _MOST):
        different.setdefault((proposal.filename, frozenset(proposal.changes)), proposal)
    plain = [one for one in different.values() if many or not one.is_multiple]
    return plain[: _MOST if many else _FEW]
