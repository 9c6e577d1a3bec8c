"""Doubts about a model: what no comparison of a file with PyTorch shows, because PyTorch does it, too.

The only part of this folder that runs on every success, too: a file that is right may still do what nobody meant. A
healthy model pays for a few runs in eager. Only what these, or the conditions that its trace noted, make suspicious
is traced once more and explained.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from anyshape.diagnosis import wording
from anyshape.diagnosis.causes import frozen
from anyshape.diagnosis.mixed_batch import mixed_samples
from anyshape.model.survey import Survey
from anyshape.results.attempt import Guard
from anyshape.results.finding import Finding
from anyshape.sizes.expressions import solved
from anyshape.sizes.notation import Condition


def pinned(survey: Survey) -> list[Finding]:
    """Why PyTorch itself runs at one size only, and what else is doubtful."""
    found = _findings_of_diagnosis(survey)
    told = {dim for finding in found for dim in finding.dims}
    rest = [pin for pin in survey.boundaries.pins if pin.dim not in told]
    return [*found, *wording.pinned_in_pytorch(rest, survey.home)]


def doubts(survey: Survey, guards: Iterable[Guard] = ()) -> list[Finding]:
    """Findings about a model that PyTorch runs at other sizes."""
    if not survey.request.spec.dims:
        return []
    conditions = dict.fromkeys(guard.condition for guard in guards if guard.condition is not None)
    doubtful = any(_is_split(one, survey.start) or _fails_without(survey, one) for one in conditions)
    if doubtful or _is_bounded_at_example(survey) or _looks_frozen(survey):
        return _findings_of_diagnosis(survey)
    if not survey.options.compares_values:
        return []  # samples differ by chance, too
    return mixed_samples(survey.reference, survey.request.spec, survey.traced, survey.home)


def _findings_of_diagnosis(survey: Survey) -> list[Finding]:
    from anyshape.diagnosis.pinned_dims import Diagnosis  # a healthy model does not wait for it

    return Diagnosis(survey).findings()


def _is_bounded_at_example(survey: Survey) -> bool:
    """Whether a limit lies just where the example does: a number may have been written for it."""
    bounds = [limit.condition for limit in survey.boundaries.limits if limit.condition.relation in ("<=", ">=")]
    known = [one for one in bounds if one.left.is_name and not one.right.names]
    return any(one.right.value({}) == survey.start[one.left.text] for one in known)


def _is_split(condition: Condition, example: Mapping[str, int]) -> bool:
    """`batch * seq % 10 == 0`: an axis is divided by a number that may be the example's size."""
    if condition.relation != "==" or "%" not in condition.left.text:
        return False
    numbers = [int(text) for text in re.findall(r"\d+", condition.left.text)]
    sizes = [example[dim] for dim in condition.names if example[dim] > 1]
    return any(number % size == 0 for number in numbers for size in sizes if number)


def _fails_without(survey: Survey, condition: Condition) -> bool:
    """Whether PyTorch fails at a size near the traced one at which a size is not the number that it should be."""
    base, spec = survey.traced, survey.request.spec
    for dim in condition.names if solved(condition) is not None else ():
        for size in (base[dim] + 1, base[dim] - 1, 2 * base[dim]):
            moved = {**base, dim: size}
            declared = size in spec.ranges[dim] and all(one.holds(moved) for one in spec.where)
            if declared and not condition.holds(moved) and not survey.reference.run(moved).runs:
                return True
    return False


def _looks_frozen(survey: Survey) -> bool:
    """Whether a number stands where a size of the example stands, by its value alone."""
    spec = survey.request.spec
    axes = [expression for row in spec.axes.values() for expression in row if expression is not None]
    sizes = {one.value(survey.start): one for one in reversed(axes)}  # of a size, the first that has it
    return bool(frozen(survey.reference.calls(survey.reference.run(survey.start)), sizes.get, survey.start))
