"""Doubts about a model: what no comparison of a file with PyTorch shows, because PyTorch does it, too.

The only part of this folder that runs on every success, too: a file that is right may still do what nobody meant. A
healthy model pays for a few runs in eager. Only what these, or the conditions that its trace noted, make suspicious
is traced once more and explained.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from anyshape.diagnosis import wording
from anyshape.diagnosis.frozen_sizes import frozen
from anyshape.diagnosis.mixed_batch import mixed_samples
from anyshape.model.survey import Ground
from anyshape.results.attempt import Guard
from anyshape.results.finding import Finding
from anyshape.sizes.notation import Condition, Expression
from anyshape.sizes.torch_symbols import solved


def pinned(ground: Ground) -> list[Finding]:
    """Why PyTorch itself runs at one size only, and what else is doubtful."""
    found = _findings_of_diagnosis(ground)
    told = {dim for finding in found for dim in finding.dims}
    rest = [pin for pin in ground.boundaries.pins if pin.dim not in told]
    return [*found, *wording.pinned_in_pytorch(rest, ground.home)]


def doubts(ground: Ground, guards: Iterable[Guard] = ()) -> list[Finding]:
    """Findings about a model that PyTorch runs at other sizes."""
    if not ground.request.spec.dims:
        return []
    conditions = dict.fromkeys(guard.condition for guard in guards if guard.condition is not None)
    doubtful = any(_is_split(one, ground.start) or _fails_without(ground, one) for one in conditions)
    if doubtful or _is_bounded_at_example(ground) or _looks_frozen(ground):
        return _findings_of_diagnosis(ground)
    return mixed_samples(ground.reference, ground.request.spec, ground.traced, ground.home)


def _findings_of_diagnosis(ground: Ground) -> list[Finding]:
    from anyshape.diagnosis.pinned_dims import Diagnosis  # a healthy model does not wait for it

    return Diagnosis(ground).findings()


def _is_bounded_at_example(ground: Ground) -> bool:
    """Whether a limit lies just where the example does: a number may have been written for it."""
    bounds = [limit.condition for limit in ground.boundaries.limits if limit.condition.relation in ("<=", ">=")]
    return any(one.left.is_name and _is_at_example(one, ground) for one in bounds)


def _is_at_example(bound: Condition, ground: Ground) -> bool:
    return not bound.right.names and bound.right.value({}) == ground.start[bound.left.text]


def _is_split(condition: Condition, example: Mapping[str, int]) -> bool:
    """`batch * seq % 10 == 0`: an axis is divided by a number that may be the example's size."""
    if condition.relation != "==" or "%" not in condition.left.text:
        return False
    numbers = [int(text) for text in re.findall(r"\d+", condition.left.text)]
    sizes = [example[dim] for dim in condition.names if example[dim] > 1]
    return any(number % size == 0 for number in numbers for size in sizes if number)


def _fails_without(ground: Ground, condition: Condition) -> bool:
    """Whether PyTorch fails at a size near the traced one at which a size is not the number that it should be."""
    base, ranges = ground.traced, ground.request.spec.ranges
    for dim in condition.names if solved(condition) is not None else ():
        for size in (base[dim] + 1, base[dim] - 1, 2 * base[dim]):
            moved = {**base, dim: size}
            if size in ranges[dim] and not condition.holds(moved) and not ground.reference.run(moved).runs:
                return True
    return False


def _looks_frozen(ground: Ground) -> bool:
    """Whether a number stands where a size of the example stands, by its value alone."""
    spec = ground.request.spec
    sizes: dict[int, Expression] = {}
    for row in spec.axes.values():
        for expression in row:
            if expression is not None:
                sizes.setdefault(expression.value(ground.start), expression)

    def in_dims(size: Any) -> Expression | None:
        return sizes.get(size)

    return bool(frozen(ground.reference.calls(ground.reference.run(ground.start)), in_dims, ground.start))
