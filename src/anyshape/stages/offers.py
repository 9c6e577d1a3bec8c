"""Declarations that would be right, where one is refused or bounded: relations that the example shows, and ranges.

What is offered in a refusal was tried. What a limit of the model says in a roundabout way, a user can declare.
"""

from __future__ import annotations

import itertools
import operator
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from anyshape.errors import AnyshapeError
from anyshape.model.limits import Limit
from anyshape.model.request import Request
from anyshape.results.result import Result
from anyshape.results.verification import Verification
from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, SizeRange, Sizes, parse_condition
from anyshape.sizes.spelling import spelled

Run = Callable[[Request], Result]


def relations_in(example: Sizes, dims: Iterable[str]) -> list[Condition]:
    """`b == a`, `total == past + seq` and `n == h*w` among these dims, as they hold in the example: equals first."""
    dims = sorted(dims, key=lambda dim: "past" not in dim)  # what came before is written before what comes now
    pairs = list(itertools.combinations(dims, 2))
    texts = [f"{b} == {a}" for a, b in pairs if example[a] == example[b]]
    for sign, of in ((" + ", operator.add), ("*", operator.mul)):
        texts += [
            f"{whole} == {a}{sign}{b}"
            for a, b in pairs
            for whole in dims
            # times 1 says nothing of a product
            if whole not in (a, b) and example[whole] == of(example[a], example[b]) > max(example[a], example[b])
        ]
    return [parse_condition(text) for text in texts]


def _line_of_relation(relation: Condition) -> str:
    """The line to add; two names that are one need none."""
    written = spelled(f'where=["{relation}"]', f"--where {shlex.quote(str(relation))}")
    if relation.right.is_name:
        return f"did you mean one dim? give both axes the name `{relation.right}`, or {written}"
    return f"declare it: {written}"


# ---- a refusal: what would be right, tried


_ABOUT_RELATIONS = {"pinned-dim", "tied-dims"}
"""Rules of what PyTorch itself refuses where dims are declared apart."""


def with_offer(request: Request, refused: Result, run: Run) -> Result:
    """The refusal with the declaration that is right in the place of advice; as it was where none was found."""
    if not refused.findings or not refused.findings[0].dims:
        return refused
    first, *others = refused.findings
    offer = ""
    if first.origin == "export" or first.rule in _ABOUT_RELATIONS:
        offer = _helpful_relation(request, first.dims, first.breaks_at, run)
    if first.origin == "export" and first.rule != "wrong-values":  # numbers that differ somewhere differ elsewhere, too
        offer = offer or _helpful_ranges(request, refused.verification, run)
    if not offer:
        return refused
    warnings = [other for other in others if other.level == "warning"]  # with what is offered, no error is left
    return replace(refused, findings=(replace(first, helps=(offer,)), *warnings))


def _helpful_relation(request: Request, dims: Sequence[str], broken: Mapping[str, int] | None, run: Run) -> str:
    """The first relation that the example keeps and with which the file is right."""
    spec = request.spec
    known = relations_in(spec.example, spec.dims)
    possible = [relation for relation in known if not set(dims).isdisjoint(relation.names)]
    # those first that speak of what was blamed alone, and that do not hold where the file is wrong
    possible.sort(key=lambda one: (len(set(one.names) - set(dims)), broken is not None and one.holds(broken)))
    for relation in possible[: budgets.MOST_RELATIONS_TRIED]:
        result = _outcome_of(run, replace(request, spec=replace(spec, where=(*spec.where, relation))))
        if result is not None and result.verdict == "checked":
            return f"{_line_of_relation(relation)}: with it the file is right"
    return ""


def _outcome_of(run: Run, trial: Request) -> Result | None:
    """Nothing where the model or the machine does not take the trial: the refusal stands as it is."""
    try:
        return run(trial)
    except AnyshapeError:
        return None


def _helpful_ranges(request: Request, verification: Verification | None, run: Run) -> str:
    """Ranges without the failing sizes for which the file is right; cut again where the rest still fails."""
    spec, ranges = request.spec, dict(request.spec.ranges)
    for _ in range(budgets.NARROWING_ROUNDS):
        if verification is None or (cut := cut_ranges(ranges, verification, spec.start)) == ranges:
            return ""
        ranges = cut
        if any(not one.is_open and len(one) == 1 for one in ranges.values()):
            return ""  # nothing varies any more
        moved = {dim: one for dim, one in ranges.items() if one != spec.ranges[dim]}
        trial = replace(request, spec=replace(spec, ranges=ranges, explicit=spec.explicit | set(moved)))
        result = _outcome_of(run, trial)
        if result is not None and result.verdict == "checked":
            return f"declare it: {_line_of_ranges(moved)}: with it the file is right"
        verification = result.verification if result is not None else None
    return ""


def _line_of_ranges(ranges: Mapping[str, SizeRange]) -> str:
    written = ", ".join(f'"{dim}": "{one}"' for dim, one in ranges.items())
    options = [shlex.quote(f"{dim}={one}") for dim, one in ranges.items()]
    return spelled(f"sizes={{{written}}}", " ".join(f"--size {option}" for option in options))


def cut_ranges(
    box: Mapping[str, SizeRange], verification: Verification, kept: Mapping[str, int]
) -> dict[str, SizeRange]:
    """Ranges without the failing sizes, cut where the fewest right sizes are lost; `kept` stays inside."""
    ranges = dict(box)
    right = [check.sizes for check in verification.checks]
    for failure in verification.failures:
        if all(failure.sizes[dim] in declared for dim, declared in ranges.items()):
            cuts = [cut for dim in ranges for cut in _cuts(ranges, dim, failure.sizes[dim], kept[dim])]
            if cuts:
                ranges = max(cuts, key=lambda cut: _count_inside(right, cut))
    return ranges


def _cuts(ranges: Mapping[str, SizeRange], dim: str, failing: int, kept: int) -> list[dict[str, SizeRange]]:
    declared = ranges[dim]
    if failing > kept:
        cut = declared.up_to(failing - 1)
    elif failing < kept:
        cut = SizeRange(declared.nearest(failing + declared.step), declared.hi, declared.step)
    else:
        return []
    return [{**ranges, dim: cut}] if kept in cut else []


def _count_inside(sizes: Iterable[Mapping[str, int]], ranges: Mapping[str, SizeRange]) -> int:
    return sum(all(size[dim] in declared for dim, declared in ranges.items()) for size in sizes)


# ---- limits of the model: what the example shows of them


def notes_on_limits(example: Sizes, limits: Iterable[Limit]) -> Iterator[str]:
    """A note for each limit on several dims that follows from a relation which the example shows."""
    for limit in limits:
        condition = limit.condition
        names = [name for name in example if name in condition.names]
        if 1 < len(names) <= budgets.MOST_DIMS_OF_A_RELATION and not limit.of_export:
            shown = (one for one in relations_in(example, names) if _implies(one, condition, names))
            yield from itertools.islice((f"limit `{condition}`: {_line_of_relation(one)}" for one in shown), 1)


def _implies(relation: Condition, condition: Condition, names: Sequence[str]) -> bool:
    """At all small sizes."""
    grid = itertools.product(range(1, 7), repeat=len(names))
    sizes = (dict(zip(names, row, strict=True)) for row in grid)
    return all(condition.holds(one) for one in sizes if relation.holds(one))
