"""The runs with other contents: of every right file at the traced size, and where sizes decide otherwise than there.

Where PyTorch itself fails, or gives nothing but NaN and inf, nothing is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import onnx_ir as ir

from anyshape.model.oracle import Outcome, RandomOutputError
from anyshape.results.verification import Verification
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes
from anyshape.testbench.plan import Budget
from anyshape.verification.contents import (
    ABOUT_NAN,
    Content,
    common_contents,
    is_telling,
    judged_with,
    valued_leaves,
)
from anyshape.verification.first_wrong_node import difference_with
from anyshape.verification.model_reference import ModelChecker
from anyshape.verification.reached_numbers import contents_at_numbers


def run_contents(
    checker: ModelChecker,
    verification: Verification,
    traced: Sizes,
    model: ir.Model,
    budget: Budget,
    otherwise: Iterable[Sequence[Sizes]] = (),
) -> Verification:
    """The runs of a right file, and those with other contents at the traced size; what is cut is a note.

    The same where sizes decide otherwise, at one size for each decision: what values are compared with may be another
    number on each path. And at the first size at which code looks into tensors where it does not at the traced one.
    """
    reference = checker.reference
    reads = reference.oracle.reads_at
    elsewhere = [check for check in verification.checks if check.sizes != traced]
    reading = [check.sizes for check in elsewhere if reads(check.sizes, check.content) - reads(traced)]
    verification, reached = _at_base(checker, verification, reference.run(traced), (), model, budget)
    for sizes in _one_of_each([reading[:1], *otherwise], lambda sizes: reference.effort(sizes).work):
        # strides are no matter of sizes
        base = reference.run(sizes)
        verification, _ = _at_base(checker, verification, base, reached, model, budget, is_further=True)
    return replace(verification, notes=tuple(dict.fromkeys(verification.notes)))


def _one_of_each(groups: Iterable[Sequence[Sizes]], work: Callable[[Sizes], float]) -> list[Sizes]:
    """Of each group the least work, if may be with no dim at 1; none for a group that another one's is a part of."""
    found: list[Sizes] = []
    for group in groups:
        if group and not any(sizes in group for sizes in found):
            found.append(min(group, key=lambda sizes: (1 in sizes.values(), work(sizes))))
    return sorted(found, key=work)[: budgets.MOST_SIZES_WITH_CONTENTS]


def _at_base(
    checker: ModelChecker,
    verification: Verification,
    base: Outcome,
    further: Sequence[Content],
    model: ir.Model,
    budget: Budget,
    *,
    is_further: bool = False,
) -> tuple[Verification, list[Content]]:
    """The same with all contents for one call, and with those further ones; and what reaches numbers there."""
    names, effort = valued_leaves(checker), checker.reference.effort(base.sizes)
    reached = list(contents_at_numbers(checker.reference.oracle, base, model, names, budget))
    common = common_contents({leaf: base.leaves[leaf] for leaf in names}, in_strides=not is_further)
    contents = (*common, *further, *reached)
    skipped: dict[str, list[str]] = {}
    for content in {(one.leaves, one.words): one for one in contents}.values():
        makes_sizes = content.change.grows and _values_make_sizes(model, [names[leaf] for leaf in content.leaves])
        reason = "values make sizes, which would grow as well" if makes_sizes else budget.refuses(effort)
        if reason is not None:
            skipped.setdefault(reason, []).append(content.told(names))
        elif not verification.failures:
            budget.charge(effort)
            verification = _with_content(checker, verification, base, content, names, model)
    notes = (f"not run with {', '.join(told)}: {reason}" for reason, told in skipped.items())
    return replace(verification, notes=(*verification.notes, *notes)), reached


def _with_content(
    checker: ModelChecker, verification: Verification, base: Outcome, content: Content, names: Mapping[str, str],
    model: ir.Model,
) -> Verification:  # fmt: skip
    """One run more; where all leaves together leave PyTorch nothing to compute, one for each of them."""
    changed = content.changes_of(base)
    if not changed:
        return verification
    outcome = checker.reference.with_leaves(base, changed)
    if is_telling(outcome) or (content.change.has_no_number and outcome.runs):
        try:
            # the first one tells the line: to look for it again takes longer than the run
            is_first = not any(note.startswith(ABOUT_NAN) for note in verification.notes)
            place = partial(_place, model, checker) if is_first else lambda *_: ""
            verification = judged_with(checker, verification, outcome, content, names, place)
        except RandomOutputError:
            if outcome.draws:
                raise
            # memory that nobody wrote to, as where no group of a grouped product has rows
            note = f"PyTorch's own results change from call to call with {content.told(names)}: these are not judged"
            verification = replace(verification, notes=(*verification.notes, note))
    for leaf in content.leaves if len(content.leaves) > 1 and not is_telling(outcome) else ():
        alone = replace(content, leaves=(leaf,))
        verification = _with_content(checker, verification, base, alone, names, model)
    return verification


def _place(model: ir.Model, checker: ModelChecker, outcome: Outcome, rule: str) -> str:
    where = difference_with(ir.to_proto(model), checker, outcome, rule)
    if where is None or where.span is None:
        return ""
    return f", first by `{where.operator}` of {where.span.path}:{where.span.line}"


_SIZE_OPERANDS: Mapping[str, Sequence[int]] = {
    "Range": (0, 1, 2), "Expand": (1,), "ConstantOfShape": (0,), "Tile": (1,), "OneHot": (1,), "Pad": (1,),
    "Resize": (2, 3), "Loop": (0,),
}  # fmt: skip
"""Operators whose results, or steps, are as many as an operand says."""


def _values_make_sizes(model: ir.Model, inputs: Collection[str]) -> bool:
    """Whether a file makes sizes of these inputs' values: ten times the values may be any number of times the work."""
    valued = {value for value in model.graph.inputs if value.name in inputs}
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        operands = _SIZE_OPERANDS.get(node.op_type, ())
        if any(place < len(node.inputs) and node.inputs[place] in valued for place in operands):
            return True
        holds_body = any(a.type == ir.AttributeType.GRAPH for a in node.attributes.values())  # and reads what it likes
        if holds_body or (node.op_type not in ("Shape", "Size") and not valued.isdisjoint(node.inputs)):
            valued.update(node.outputs)
    return False
