"""`narrow=True`: the widest declaration for which a file is right. Only at the user's wish; what is given up is said.

First the conditions that the trace itself assumed (exact, and the widest); then ranges cut so that no failing size
remains; a dim that cannot vary at all becomes static.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from anyshape.declaration.spec import Spec
from anyshape.model.limits import Limit
from anyshape.model.survey import Survey
from anyshape.onnxfile.saving import Stage
from anyshape.results.attempt import Attempt
from anyshape.results.finding import Finding
from anyshape.results.result import Result
from anyshape.results.verification import Verification
from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, Expression, SizeRange, parse_expression
from anyshape.stages.written_file import write_file
from anyshape.verification.candidate_check import Checked, try_out


def without_dims(spec: Spec, dims: Iterable[str]) -> Spec:
    """The declaration with these dims fixed at their size in the example."""
    fixed = {dim: spec.example[dim] for dim in dims}
    axes = {name: tuple(None if e is None else _substituted(e, fixed) for e in row) for name, row in spec.axes.items()}
    scalars = {name: _substituted(expression, fixed) for name, expression in spec.scalars.items()}
    constants = {**spec.constants, **{n: spec.scalars[n].value(spec.example) for n, e in scalars.items() if e is None}}
    return replace(
        spec,
        axes=axes,
        scalars={name: e for name, e in scalars.items() if e is not None},
        constants=constants,
        ranges={dim: declared for dim, declared in spec.ranges.items() if dim not in fixed},
        example={dim: size for dim, size in spec.example.items() if dim not in fixed},
        explicit=spec.explicit - set(fixed),
        where=tuple(left for one in spec.where if (left := _left_of(one, fixed)) is not None),
    )


def _left_of(condition: Condition, fixed: Mapping[str, int]) -> Condition | None:
    """A relation with the sizes of fixed dims in it; None where nothing varies in it any more."""
    sides = [_text_with(one, fixed) for one in (condition.left, condition.right)]
    left = Condition(sides[0], condition.relation, sides[1])
    return left if left.names else None


def _substituted(expression: Expression, fixed: Mapping[str, int]) -> Expression | None:
    left = _text_with(expression, fixed)
    return left if left.names else None


def _text_with(expression: Expression, fixed: Mapping[str, int]) -> Expression:
    text = expression.text
    for dim, size in fixed.items():
        text = re.sub(rf"\b{re.escape(dim)}\b", str(size), text)
    return parse_expression(text)


def assumed_conditions(verification: Verification, conditions: Sequence[Condition]) -> list[Condition]:
    """The fewest conditions of the trace that hold at every right size and rule out wrong ones, as far as they do."""
    right = [check.sizes for check in verification.checks]
    wrong = [failure.sizes for failure in verification.failures]
    possible = [condition for condition in conditions if all(condition.holds(sizes) for sizes in right)]
    chosen: list[Condition] = []
    while wrong and possible:
        best = max(possible, key=lambda condition: sum(not condition.holds(sizes) for sizes in wrong))
        left = [sizes for sizes in wrong if best.holds(sizes)]
        if len(left) == len(wrong):
            break
        chosen.append(best)
        wrong = left
    return chosen


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


# ---- a file for less than was declared


def narrowed_file(
    survey: Survey, stage: Stage, checked: Checked, attempts: Sequence[Attempt], findings: Sequence[Finding]
) -> Result | None:
    """The widest part of the declaration for which this candidate is right, written; None where there is none."""
    ranges = dict(survey.request.spec.ranges)
    conditions = [guard.condition for guard in checked.candidate.guards if guard.condition is not None]
    attempt = next(a for a in attempts if a.strategy == checked.strategy)
    for _ in range(budgets.NARROWING_ROUNDS):
        assumed = assumed_conditions(checked.verification, conditions)
        if assumed:
            # in a copy: limits of a narrower file are none of the model's, and another candidate starts without them
            limits = [Limit(condition, of_export=True) for condition in assumed]
            survey = replace(survey, boundaries=survey.boundaries.with_limits(limits))
            conditions = [condition for condition in conditions if condition not in assumed]
        else:
            cut = cut_ranges(ranges, checked.verification, survey.traced)
            if cut == ranges:
                return None
            ranges = cut
        checked = try_out(survey, stage, checked.candidate, attempt, ranges)
        if checked.verification.is_right:
            told = [replace(a, outcome="narrowed") if a.strategy == checked.strategy else a for a in attempts]
            return write_file(
                survey, stage, checked.candidate, told, checked.verification, "narrowed", findings, ranges
            )
    return None
