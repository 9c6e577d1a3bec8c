"""A dim that nobody named is a move: places that change together, each by its step, and the model still runs.

`batch` is a move of one axis by 1, an image's height in patches of 16 a move by 16, `n + 1` beside `n` a move of two
axes by 1, `2*n` beside `n` one by 1 and 2; the length of a mask over `past + seq` stands in two moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anyshape.declaration.calls import Signature
from anyshape.declaration.targets import Target
from anyshape.model.proposal.moves_bundles import bundles, spread
from anyshape.model.proposal.moves_resampling import enlarged, shrunk
from anyshape.model.proposal.probe import Budget, Place, Prober

Steps = Mapping[Place, int]


@dataclass(frozen=True)
class Move:
    """The places that one dim moves, and on what that is based."""

    steps: Steps
    basis: str
    is_square: bool = False
    """Whether its one place is the square of the dim: a grid of tokens."""
    is_halved: bool = False
    """Whether a place is half of another and one more, rounded down: the bins of a spectrum."""
    is_lowest: bool = False
    """Whether it grows but does not shrink."""


@dataclass
class Ground:
    """Where moves are tried: the example, at sizes that tell more where its own do not."""

    original: Prober
    prober: Prober
    bundled: Mapping[Place, tuple[Place, ...]]
    fixed: set[Place] = field(default_factory=set)
    """Places that a weight of the model fixes."""
    slack: set[Place] = field(default_factory=set)
    """Places that grow but do not shrink: a gather tolerates more rows, or the example is at its smallest."""

    @classmethod
    def of(cls, target: Target, signature: Signature, *, budget: Budget, seed: int) -> Ground:
        """Inside `quiet`, which every run by itself would pay for."""
        original = Prober(target, signature, budget=budget, seed=seed, is_quiet=True)
        bundled = bundles(signature)
        prober = original
        for resampled in (shrunk, enlarged):
            if (made := resampled(prober, bundled)) is not None:
                prober = Prober(target, made, budget=budget, seed=seed, is_quiet=True)
        return cls(original, prober, bundled)

    @property
    def sizes(self) -> Mapping[Place, int]:
        return self.prober.sizes

    @property
    def places(self) -> list[Place]:
        return list(self.bundled)

    def runs(self, steps: Steps, times: int = 1) -> bool:
        """Whether the model runs with the places moved so many times."""
        return self.prober.runs(self._moved(self.prober, steps, times))

    def outputs(self, steps: Steps, times: int) -> tuple[tuple[int, ...], ...] | None:
        return self.prober.outputs(self._moved(self.prober, steps, times))

    def admits(self, steps: Steps, further: Sequence[int] = (2,)) -> bool:
        """Whether the places move: by one step, by more, and back; back in the example as it was given, too."""
        return all(self.runs(steps, times) for times in (1, *further)) and self.shrinks(steps)

    def shrinks(self, steps: Steps) -> bool:
        if _stays_positive(self.sizes, steps) and not self.runs(steps, -1):
            return False
        given = self.original.sizes
        differs = any(given[place] != self.sizes[place] for place in steps)
        if not differs or not _stays_positive(given, steps):
            return True
        return self.original.runs(self._moved(self.original, steps, -1))

    def is_fixed_by_weight(self, place: Place) -> bool:
        return self.prober.refuses_by_weight(self._moved(self.prober, {place: 1}, 1))

    def _moved(self, prober: Prober, steps: Steps, times: int) -> dict[Place, int]:
        return spread({place: prober.sizes[place] + times * step for place, step in steps.items()}, self.bundled)


def _stays_positive(sizes: Mapping[Place, int], steps: Steps) -> bool:
    return all(sizes[place] >= step + 1 for place, step in steps.items())


# ---- one axis


def step_of(ground: Ground, place: Place) -> int | None:
    """The smallest step in which a place moves alone, or None."""
    if ground.runs({place: 1}):
        goes_on = all(ground.runs({place: 1}, times) for times in (2, 5))
        if ground.shrinks({place: 1}):
            return 1 if goes_on or _moves_an_output(ground, place) else None
        if goes_on:
            ground.slack.add(place)
        return None
    if place[1] is None:
        return None
    if ground.is_fixed_by_weight(place):
        ground.fixed.add(place)
    size = ground.sizes[place]
    if size < 2 or not ground.runs({place: size}):
        return None
    alike = [p for p in ground.places if p[1] == place[1] and ground.sizes[p] == size]
    if len(alike) > 1 and ground.admits(dict.fromkeys(alike, 1)):
        return None  # it moves by one with others: that it moves by many alone is an accident of a reshape
    steps = (step for step in range(2, size + 1) if size % step == 0)
    return next((step for step in steps if ground.admits({place: step}, (2, 3))), None)


def _moves_an_output(ground: Ground, place: Place) -> bool:
    """Whether a place that cannot move far moves an output either way: its end is near."""
    if place[1] is None or ground.sizes[place] < 2:
        return False
    shapes = [ground.outputs({place: 1}, times) for times in (-1, 0, 1)]
    return None not in shapes and len(set(shapes)) == len(shapes)


def side_of_square(ground: Ground, place: Place) -> int | None:
    """The side of a grid whose tokens a place counts."""
    side = round(ground.sizes[place] ** 0.5)
    if side < 2 or side * side != ground.sizes[place]:
        return None
    others = (side + 1, side + 2, side - 1)
    is_square = all(ground.runs({place: other * other - side * side}) for other in others)
    return side if is_square else None


def is_at_its_smallest(ground: Ground, place: Place) -> bool:
    """Whether a place that cannot shrink makes some output grow: a dim, and not rows that nobody reads."""
    if place not in ground.slack or place[1] is None:
        return False
    size, now = ground.sizes[place], ground.outputs({}, 1)
    return any(ground.outputs({place: by}, 1) not in (None, now) for by in (size, 3 * size + 3))
