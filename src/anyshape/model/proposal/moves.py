"""A dim that nobody named is a move: places that change together, each by its step, and the model still runs.

`batch` is a move of one axis by 1, an image's height in patches of 16 a move by 16, `n + 1` beside `n` a move of two
axes by 1, `2*n` beside `n` one by 1 and 2; the length of a mask over `past + seq` stands in two moves.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from anyshape.declaration.calls import Leaf, Signature
from anyshape.declaration.targets import Target
from anyshape.model.proposal.dim_names import words_of
from anyshape.model.proposal.probe import Place, Prober, RunBudget, Shapes, argument_of, sizes_of
from anyshape.sizes import budgets

PlaceSteps = Mapping[Place, int]


@dataclass(frozen=True)
class DimMove:
    """The places that one dim moves, and on what that is based."""

    steps: PlaceSteps
    basis: str
    is_square: bool = False
    """Whether its one place is the square of the dim: a grid of tokens."""
    is_halved: bool = False
    """Whether a place is half of another and one more, rounded down: the bins of a spectrum."""
    is_lowest: bool = False
    """Whether it grows but does not shrink."""


# ---- bundles: leaves that are alike in every layer, such as the keys and values of a cache, are probed as one

Bundled = Mapping[Place, tuple[Place, ...]]
"""Each place that stands for others -> all of them, itself included; every place is in one bundle."""

_HOLDS_THE_PAST = re.compile(r"past|cache|present|earlier|mem")


def bundles(signature: Signature) -> dict[Place, tuple[Place, ...]]:
    """Those of one call."""
    firsts: dict[tuple[object, ...], Place] = {}
    found: dict[Place, tuple[Place, ...]] = {}
    leaves = {leaf.name: leaf for leaf in signature.leaves}
    for place in sizes_of(signature):
        first = firsts.setdefault((*_kind_of_leaf(leaves[place[0]]), place[1]), place)
        found[first] = (*found.get(first, ()), place)
    return found


def _kind_of_leaf(leaf: Leaf) -> tuple[object, ...]:
    """What leaves of one bundle have in common; a leaf of its own has its name alone."""
    if not leaf.is_tensor or not _HOLDS_THE_PAST.search(leaf.name):
        return (leaf.name,)
    *outer, last = leaf.name.split(".")
    layer = re.sub(r"\d+", "#", ".".join(outer))
    # of what stands in each layer, the first and the second may differ
    role = last if outer and last.isdecimal() else _without_role(last)
    return (layer, role, leaf.value.dtype, tuple(leaf.value.shape))


def _without_role(name: str) -> str:
    """`past_k0` and `past_v1` are alike; so are `key` and `value`."""
    return re.sub(r"(?<![a-z])(keys?|values?|k|v)(?![a-z])", "kv", re.sub(r"\d+", "#", name))


def spread(sizes: Mapping[Place, int], bundled: Bundled) -> dict[Place, int]:
    """Sizes of places for all that they stand for."""
    return {member: size for place, size in sizes.items() for member in bundled.get(place, (place,))}


# ---- the example at sizes that tell more
#
# Small axes are enlarged, since everything broadcasts at 1, and large ones made smaller.
# An example as long as a table of the model cannot grow, and a large one costs time at every run. New small sizes stand
# nowhere else in the call, so that no axis equals another by accident.

_TOO_SMALL = (1, 2)
_FURTHER = (2, 5)
"""By how much an axis must be able to grow before it is enlarged_call."""
_CAN_BE_HALVED, _LARGE = 8, 64
_FRACTIONS = (8, 4, 2)


def shrunk_call(prober: Prober, bundled: Bundled) -> Signature | None:
    """The call with large axes, and those that cannot grow, at a fraction of their size; None where there are none."""
    sizes = prober.sizes
    kinds: dict[tuple[int, int], list[Place]] = {}
    for place in bundled:
        if place[1] is not None and sizes[place] >= _CAN_BE_HALVED:
            kinds.setdefault((place[1], sizes[place]), []).append(place)
    chosen: dict[Place, int] = {}
    for (_, size), places in kinds.items():
        if size > _LARGE or not prober.runs(spread(dict.fromkeys(places, size + 1), bundled)):
            chosen |= _sizes_at_a_fraction(prober, bundled, places, chosen)
    return _call_at(prober, spread(chosen, bundled)) if chosen else None


def _sizes_at_a_fraction(
    prober: Prober, bundled: Bundled, places: Sequence[Place], chosen: Mapping[Place, int]
) -> dict[Place, int]:
    size = prober.sizes[places[0]]
    parts = (size // by for by in _FRACTIONS if size % by == 0 and size // by >= _CAN_BE_HALVED // 2)
    wanted = (dict.fromkeys(places, part) for part in parts)
    return next((sizes for sizes in wanted if prober.runs(spread({**chosen, **sizes}, bundled))), {})


def enlarged_call(prober: Prober, bundled: Bundled) -> Signature | None:
    """The call with its small axes enlarged_call; None where there are none, or none can be."""
    small = [p for p in bundled if p[1] is not None and prober.sizes[p] in _TOO_SMALL]

    def grows(places: Iterable[Place]) -> bool:
        further = ({place: prober.sizes[place] + by for place in places} for by in _FURTHER)
        return all(prober.runs(spread(sizes, bundled)) for sizes in further)

    chosen = _places_that_grow(grows, small, prober.sizes)
    for sizes in _new_sizes(chosen, prober.sizes):
        wanted = spread(sizes, bundled)
        if sizes and prober.runs(wanted):
            return _call_at(prober, wanted)
    return None


def _places_that_grow(
    grows: Callable[[Sequence[Place]], bool], small: Sequence[Place], sizes: Mapping[Place, int]
) -> list[Place]:
    """All small axes that grow together, or as many as are found."""
    whole = [list(small), *([p for p in small if sizes[p] == size] for size in _TOO_SMALL)]
    for places in whole:
        if places and grows(places):
            return places
    kept: list[Place] = []
    for _, alike in itertools.groupby(sorted(small, key=_axis_and_size(sizes)), key=_axis_and_size(sizes)):
        places = list(alike)
        fewer = ([p for p in places if p != left] for left in places if len(places) > 1)
        kept += next((some for some in (places, *fewer) if grows([*kept, *some])), [])
    return kept


def _axis_and_size(sizes: Mapping[Place, int]) -> Callable[[Place], tuple[int, int]]:
    return lambda place: (place[1] or 0, sizes[place])


def _new_sizes(places: Sequence[Place], sizes: Mapping[Place, int]) -> Iterator[dict[Place, int]]:
    """Another size for each axis number and old size; where that does not run, for each old size alone."""
    free = [size for size in range(3, 64) if size not in set(sizes.values())]
    by_axis = sorted({_axis_and_size(sizes)(place) for place in places})
    yield {place: free[by_axis.index(_axis_and_size(sizes)(place))] for place in places}
    yield {place: free[_TOO_SMALL.index(sizes[place])] for place in places}


def _call_at(prober: Prober, sizes: Mapping[Place, int]) -> Signature:
    """The call at these sizes, with content that means something where the model takes it."""
    signature = prober.signature
    for level in range(3):
        values = prober.meaningful_leaves(sizes, level)
        leaves = tuple(Leaf(leaf.name, values[leaf.name]) for leaf in signature.leaves)
        made = Signature(leaves, signature.positional, signature.keywords)
        if prober.accepts(values):
            break
    return made


# ---- where moves are tried


@dataclass
class ProbingGround:
    """Where moves are tried: the example, at sizes that tell more where its own do not."""

    original: Prober
    prober: Prober
    bundled: Bundled
    fixed: set[Place] = field(default_factory=set)
    """Places that a weight of the model fixes."""
    slack: set[Place] = field(default_factory=set)
    """Places that grow but do not shrink: a gather tolerates more rows, or the example is at its smallest."""

    @classmethod
    def of(cls, target: Target, signature: Signature, *, budget: RunBudget) -> ProbingGround:
        """Inside `quiet`, which every run by itself would pay for."""
        original = Prober(target, signature, budget=budget, is_quiet=True)
        bundled = bundles(signature)
        prober = original
        for resampled in (shrunk_call, enlarged_call):
            if (made := resampled(prober, bundled)) is not None:
                prober = Prober(target, made, budget=budget, is_quiet=True)
        return cls(original, prober, bundled)

    @property
    def sizes(self) -> Mapping[Place, int]:
        return self.prober.sizes

    def runs(self, steps: PlaceSteps, times: int = 1) -> bool:
        """Whether the model runs with the places moved so many times."""
        return self.prober.runs(self._sizes_after(self.prober, steps, times))

    def outputs(self, steps: PlaceSteps, times: int) -> Shapes | None:
        return self.prober.outputs(self._sizes_after(self.prober, steps, times))

    def admits(self, steps: PlaceSteps, further: Sequence[int] = (2,)) -> bool:
        """Whether the places move: by one step, by more, and back; back in the example as it was given, too."""
        return all(self.runs(steps, times) for times in (1, *further)) and self.shrinks(steps)

    def shrinks(self, steps: PlaceSteps) -> bool:
        if _stays_positive(self.sizes, steps) and not self.runs(steps, -1):
            return False
        given = self.original.sizes
        differs = any(given[place] != self.sizes[place] for place in steps)
        if not differs or not _stays_positive(given, steps):
            return True
        return self.original.runs(self._sizes_after(self.original, steps, -1))

    def is_fixed_by_weight(self, place: Place) -> bool:
        return self.prober.refuses_by_weight(self._sizes_after(self.prober, {place: 1}, 1))

    def _sizes_after(self, prober: Prober, steps: PlaceSteps, times: int) -> dict[Place, int]:
        return spread({place: prober.sizes[place] + times * step for place, step in steps.items()}, self.bundled)


def _stays_positive(sizes: Mapping[Place, int], steps: PlaceSteps) -> bool:
    return all(sizes[place] >= step + 1 for place, step in steps.items())


# ---- one axis


def step_of(ground: ProbingGround, place: Place) -> int | None:
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
    alike = [p for p in ground.bundled if p[1] == place[1] and ground.sizes[p] == size]
    if len(alike) > 1 and ground.admits(dict.fromkeys(alike, 1)):
        return None  # it moves by one with others: that it moves by many alone is an accident of a reshape
    steps = (step for step in range(2, size + 1) if size % step == 0)
    return next((step for step in steps if ground.admits({place: step}, (2, 3))), None)


def _moves_an_output(ground: ProbingGround, place: Place) -> bool:
    """Whether a place that cannot move far moves an output either way: its end is near."""
    if place[1] is None or ground.sizes[place] < 2:
        return False
    shapes = [ground.outputs({place: 1}, times) for times in (-1, 0, 1)]
    return None not in shapes and len(set(shapes)) == len(shapes)


def side_of_square(ground: ProbingGround, place: Place) -> int | None:
    """The side of a grid whose tokens a place counts."""
    side = round(ground.sizes[place] ** 0.5)
    if side < 2 or side * side != ground.sizes[place]:
        return None
    others = (side + 1, side + 2, side - 1)
    is_square = all(ground.runs({place: other * other - side * side}) for other in others)
    return side if is_square else None


def is_at_its_smallest(ground: ProbingGround, place: Place) -> bool:
    """Whether a place that cannot shrink makes some output grow: a dim, and not rows that nobody reads."""
    if place not in ground.slack or place[1] is None:
        return False
    size, now = ground.sizes[place], ground.outputs({}, 1)
    return any(ground.outputs({place: by}, 1) not in (None, now) for by in (size, 3 * size + 3))


# ---- all moves: first the places that move alone, then those that need partners, and no more than are needed
#
# Partners are looked for in the order in which they are likely: the same size on the same axis, in the same nested
# input, anywhere; some of these; these and one of another size, which follows by the same step or in proportion
# (`n + 1`, `2*n`, `past + seq`, `height*width`).


def find_moves(ground: ProbingGround, static: Collection[Place] = ()) -> list[DimMove]:
    """Every move that the model admits; places that are known to be static are not asked."""
    asked = [place for place in ground.bundled if place not in static]
    alone = {place: step for place in asked if (step := step_of(ground, place)) is not None}
    moves = [DimMove({place: step}, _basis_of({place: step})) for place, step in alone.items()]
    tied = [place for place in asked if place not in alone and place not in ground.fixed]
    done: set[Place] = set()
    for place in tied:
        if place in done:
            continue
        found = _move_around(ground, place, tied, [p for p in asked if p not in ground.fixed])
        found = _without_known(ground, place, found, moves) if found is not None else None
        if found is not None and found.steps not in [move.steps for move in moves]:
            moves.append(found)
            done |= {p for p in found.steps if len(found.steps) > 1 and ground.sizes[p] == ground.sizes[place]}
    return moves


def _move_around(ground: ProbingGround, place: Place, tied: list[Place], asked: list[Place]) -> DimMove | None:
    steps = find_partners(ground, place, tied)
    if steps is None and len(asked) > len(tied):
        # a partner that also moves alone: two times as many rows, of which one more is tolerated
        steps = find_partners(ground, place, asked, deep=False)
    if steps is not None:
        return DimMove(steps, _basis_of(steps), is_halved=_is_halved(ground, steps))
    if place[1] is not None and (side := side_of_square(ground, place)) is not None:
        return DimMove({place: (side + 1) ** 2 - side**2}, "runs at square numbers", is_square=True)
    if is_at_its_smallest(ground, place):
        return DimMove({place: 1}, "grows, and is at its smallest in the example", is_lowest=True)
    return None


def _without_known(ground: ProbingGround, place: Place, move: DimMove, known: Sequence[DimMove]) -> DimMove | None:
    """What is left of a move without those that it contains; rows that nobody reads move along with anything."""
    for other in known:
        rest = {p: step for p, step in move.steps.items() if p not in other.steps}
        if place not in rest or any(move.steps.get(p) != step for p, step in other.steps.items()):
            continue
        if ground.admits(rest):
            move = DimMove(rest, _basis_of(rest))
        elif place in ground.slack:
            return None
    return move


def _is_halved(ground: ProbingGround, steps: PlaceSteps) -> bool:
    """Whether one place moves by two and the other by one, and the first by one alone: `n` and `n // 2 + 1`."""
    wholes = [place for place, step in steps.items() if step == 2]
    halves = [place for place, step in steps.items() if step == 1]
    fits = bool(wholes and halves) and all(ground.sizes[h] == ground.sizes[w] // 2 + 1 for h in halves for w in wholes)
    return fits and ground.sizes[wholes[0]] % 2 == 0 and ground.runs(dict.fromkeys(wholes, 1))


def _basis_of(steps: PlaceSteps) -> str:
    (step, *others) = steps.values()
    return "move together" if others else "moves alone" if step == 1 else f"moves alone, by {step}"


# ---- the partners of one place


def find_partners(
    ground: ProbingGround, place: Place, pool: Sequence[Place], *, deep: bool = True
) -> dict[Place, int] | None:
    """The smallest move around a place with partners from the pool, or None."""
    others = [other for other in pool if other != place]
    for steps in _steps_to_try(ground, place, others, deep=deep):
        if ground.prober.budget.is_spent():
            return None
        if ground.admits(steps):
            return _one_of_two_moves(ground, _needed_steps(ground, steps, place), place)
    return None


# ---- which partners, in which order


def _steps_to_try(
    ground: ProbingGround, place: Place, others: Sequence[Place], *, deep: bool
) -> Iterator[dict[Place, int]]:
    sizes = ground.sizes
    equal = [other for other in others if sizes[other] == sizes[place]]
    equal.sort(key=lambda other: (-_shared_words(other, place), other[1] != place[1]))
    groups = list(_equal_groups(place, equal))
    for group in groups:
        yield dict.fromkeys(group, 1)
    for other in equal:
        yield {place: 1, other: 1}
    if deep and len(equal) > 2:
        yield from _all_but_some(place, equal)
    unequal = [other for other in others if sizes[other] != sizes[place]]
    for group in ([place], *groups):
        yield from _with_another_size(ground, group, unequal)


def _shared_words(one: Place, other: Place) -> int:
    """How many words two names share: `past_k` and `past_v`, `q_ids` and `q_mask`."""
    return len(set(words_of(one[0])) & set(words_of(other[0])))


def _equal_groups(place: Place, equal: Sequence[Place]) -> Iterator[list[Place]]:
    same_axis = [other for other in equal if other[1] == place[1]]
    siblings = [other for other in same_axis if argument_of(other[0]) == argument_of(place[0])]
    others = ([other for other in equal if other[1] == axis] for axis in dict.fromkeys(axis for _, axis in equal))
    groups = [same_axis, siblings, list(equal), *(group for group in others if len(group) > 1)]
    yield from ([place, *group] for n, group in enumerate(groups) if group and group not in groups[:n])


def _all_but_some(place: Place, equal: Sequence[Place]) -> Iterator[dict[Place, int]]:
    """Some are equal by coincidence: batch and heads, say."""
    for left_out in _one_or_two_of(equal, len(equal)):
        kept = [other for other in equal if other not in left_out]
        if len(kept) > 1:
            yield dict.fromkeys([place, *kept], 1)


def _one_or_two_of(places: Sequence[Place], count: int) -> Iterator[tuple[Place, ...]]:
    """Each place, then each pair where there are few."""
    for size in (1, 2) if count <= budgets.FEW_PLACES_TO_COMBINE else (1,):
        yield from itertools.combinations(places, size)


def _with_another_size(
    ground: ProbingGround, group: Sequence[Place], unequal: Sequence[Place]
) -> Iterator[dict[Place, int]]:
    sizes = ground.sizes
    size = sizes[group[0]]
    for other in unequal:
        twins = [o for o in unequal if sizes[o] == sizes[other] and o[1] == other[1]]
        for own, its in _proportions(size, sizes[other]):
            for partners in ([other], twins) if len(twins) > 1 else ([other],):
                yield dict.fromkeys(group, own) | dict.fromkeys(partners, its)


def _proportions(size: int, other: int) -> Iterator[tuple[int, int]]:
    """The same step, or that of a multiple; and half of a spectrum, which has one more."""
    yield 1, 1
    if 0 < size < other and other % size == 0:
        yield 1, other // size
    if 0 < other < size and size % other == 0:
        yield size // other, 1
    if other == size // 2 + 1:
        yield 2, 1
    if size == other // 2 + 1:
        yield 1, 2


# ---- no more than are needed


def _needed_steps(ground: ProbingGround, steps: PlaceSteps, place: Place) -> dict[Place, int]:
    """Without the partners that need not move."""
    kept = dict(steps)
    for other in sorted(steps, key=lambda o: o[1] == place[1]):
        fewer = {p: step for p, step in kept.items() if p != other}
        if other != place and fewer and ground.admits(fewer):
            kept = fewer
    return kept


def _one_of_two_moves(ground: ProbingGround, steps: dict[Place, int], place: Place) -> dict[Place, int]:
    """A move that no single removal makes smaller may be the sum of two."""
    if len(steps) < 4:
        return steps
    rest = [other for other in steps if other != place]
    parts = [(place, *more) for more in _one_or_two_of(rest, len(steps)) if len(more) + 1 < len(steps) - 1]
    alike = [[o for o in steps if o[1] == place[1]], [o for o in steps if argument_of(o[0]) == argument_of(place[0])]]
    parts += [tuple(part) for part in alike if 1 < len(part) < len(steps)]
    for part in parts:
        smaller = {other: steps[other] for other in part}
        if ground.admits(smaller):
            return _needed_steps(ground, smaller, place)
    return steps
