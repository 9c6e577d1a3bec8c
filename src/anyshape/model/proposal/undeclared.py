"""Nothing was declared: dims from several calls, from `make_inputs`, or from one call by asking the model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyshape.declaration.calls import Signature
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError
from anyshape.model.oracle import call_make_inputs
from anyshape.model.proposal import one_call, several_calls
from anyshape.model.proposal.given_calls import columns_of
from anyshape.model.proposal.probe import Place
from anyshape.model.proposal.proposal import DimProposal, notation
from anyshape.sizes.fit import Column, formulas, moves


def propose(
    target: Target,
    calls: Sequence[Signature],
    make_inputs: Callable[..., Any] | None = None,
    known: Mapping[str, int] | None = None,
) -> DimProposal:
    """The declaration that stands in for the user's own; its first note says where it comes from."""
    if len(calls) > 1:
        found, source = several_calls.propose(target, calls), f"dims were found from {len(calls)} calls"
    elif make_inputs is not None and known:
        found, source = propose_from_make_inputs(target, make_inputs, known), "dims are the parameters of make_inputs"
    else:
        found, source = one_call.propose(target, calls[0]), "nothing was declared: dims were found by probing"
    return replace(found, notes=(f"{source}; declare dims= to say otherwise", *found.notes))


# ---- the parameters of `make_inputs` are the dims; calls of several sizes show which axes follow which

_STEPS = (1, 2, 3, 5, 7, 11)
"""All unlike, so that no two parameters grow side by side."""


def propose_from_make_inputs(target: Target, make_inputs: Callable[..., Any], known: Mapping[str, int]) -> DimProposal:
    """Every axis that moves with a parameter, as an expression of the parameters; `known` are sizes that run."""
    calls = [
        (sizes, made) for sizes in _sizes_to_call(known) if (made := _call_at(target, make_inputs, sizes)) is not None
    ]
    parameters = {name: tuple(sizes[name] for sizes, _ in calls) for name in known}
    columns = columns_of([made for _, made in calls])
    texts = {place: _size_text(place, column, parameters) for place, column in columns.items() if moves(column)}
    example = calls[0][1]
    used = [name for name in known if any(name in text for text in texts.values())]
    return DimProposal(notation(example, texts), {}, dict.fromkeys(used, "a parameter of make_inputs"))


def _sizes_to_call(known: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The sizes that are known to run, each parameter alone, twice as large, and all together by unlike steps."""
    yield dict(known)
    for name, size in known.items():
        yield from ({**known, name: moved} for moved in (size + 1, size + 2, 2 * size, 3 * size) if moved != size)
    yield {name: size + _STEPS[index % len(_STEPS)] for index, (name, size) in enumerate(known.items())}


def _call_at(target: Target, make_inputs: Callable[..., Any], sizes: Mapping[str, int]) -> Signature | None:
    """A call of these sizes; None where the function refuses them, as it may."""
    with contextlib.suppress(Exception):
        return call_make_inputs(make_inputs, dict(sizes), seed=0, target=target)
    return None


def _size_text(place: Place, column: Column, parameters: Mapping[str, Column]) -> str:
    varying = {name: sizes for name, sizes in parameters.items() if moves(sizes)}
    found = formulas(column, list(varying.values()))
    if not found:
        name, axis = place
        where = f"`{name}`" if axis is None else f"axis {axis} of `{name}`"
        raise DeclarationError(f"{where} moves with the sizes of make_inputs in no way that is known: give dims=")
    return found[0].text(dict(enumerate(varying)))
