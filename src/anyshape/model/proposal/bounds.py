"""What is said about a proposal: on what each dim is based, what the example leaves open, how long was searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from anyshape.model.proposal.layout import Dim
from anyshape.model.proposal.probe import Place

_SHOWN = 3


def basis_of(dim: Dim) -> str:
    """One clause: `axis 1 of `ids` and axis 1 of `mask` move together`."""
    return f"{places_text(dim.move.steps)} {dim.move.basis}"


def places_text(places: Iterable[Place]) -> str:
    """`axis 0 of `x`, axis 1 of `y` and 3 more`."""
    texts = [f"`{leaf}`" if axis is None else f"axis {axis} of `{leaf}`" for leaf, axis in places]
    if len(texts) > _SHOWN + 1:
        texts = [*texts[:_SHOWN], f"{len(texts) - _SHOWN} more"]
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


NOTHING_VARIES = "no axis was found to vary: the model runs at the sizes of the example alone"


def note_of_coincidence(one: str, other: str, size: int) -> str:
    return (
        f"`{one}` and `{other}` are both {size} in the example and vary apart, so they are two dims; "
        "if they are meant as one, give them one name, or a second call that shows it"
    )


def note_of_joint_failure(dim: Dim) -> str:
    verb, stay = ("varies", "it stays") if len(dim.move.steps) == 1 else ("vary", "they stay")
    return f"{places_text(dim.move.steps)} {verb} alone, but not together with the other dims: {stay} static"


def note_of_a_relation(sizes: Mapping[str, int]) -> str:
    shown = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return f"each dim varies alone, but not in every combination: the model does not run at {shown}"


def note_of_common_bound(ends: Sequence[tuple[str, int]]) -> str:
    reach = " and ".join(f"`{name}` = {size}" for name, size in ends)
    return f"the model runs up to {reach} one at a time, but not at once: no upper bound is proposed"


def note_of_the_search(runs: int, seconds: float, *, spent: bool) -> Iterator[str]:
    """How many runs, and whether they sufficed."""
    if spent:
        yield f"the search ended after {runs} runs or {seconds:.0f} s: more axes may vary than were found"
    else:
        yield f"found with {runs} runs of the model"
