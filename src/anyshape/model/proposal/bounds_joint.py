"""Dims that move one by one need not move together: all are tried at once, and what breaks it is left static."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from anyshape.model.proposal.bounds_bounds import Bounded
from anyshape.model.proposal.bounds_trials import Trials
from anyshape.model.proposal.layout_features import may_be_features

_ROUNDS = 12
_TOLERATED = 3
"""So few rounds may fail: two dims may be related at some of their sizes, which a check finds out."""
_TIMES = (1, 2, 3, -1)
"""By how many steps a dim moves in a round."""

Sizes = Mapping[str, int]


def failing_rounds(dims: Sequence[Bounded], runs: Callable[[Sizes], bool], *, seed: int) -> list[Sizes]:
    """Sizes of all dims at which the model does not run, of a dozen drawn by lot."""
    lot = random.Random(seed)  # noqa: S311  sizes, not secrets
    rounds = [{one.name: _moved(one, lot.choice(_TIMES)) for one in dims} for _ in range(_ROUNDS)]
    return [sizes for sizes in rounds if not runs(sizes)] if len(dims) > 1 else []


def find_breaking(dims: Sequence[Bounded], failing: Sequence[Sizes], trials: Trials) -> Bounded | None:
    """The dim to leave out: the least certain one without which the others run; None where all may stay."""
    if len(failing) <= _TOLERATED:
        return None
    doubtful = sorted(dims, key=lambda one: _certainty(one, trials.ranks))
    return next((one for one in doubtful if trials.runs({**failing[0], one.name: one.dim.size})), doubtful[0])


def _moved(bounded: Bounded, times: int) -> int:
    size = bounded.dim.size + bounded.dim.step * times
    return max(bounded.lo, size if bounded.hi is None else min(size, bounded.hi))


def _certainty(bounded: Bounded, ranks: Mapping[str, int]) -> tuple[bool, int, int, bool]:
    """A batch is certain, and so is what moves only with partners; an odd step may be an accident of rounding."""
    places = bounded.dim.move.steps
    are_sizes = not any(may_be_features(place, ranks.get(place[0], 0)) for place in places)
    return are_sizes, sum(axis == 0 for _, axis in places), len(places), bounded.dim.step > 1
