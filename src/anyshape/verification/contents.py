"""Contents: what a call may hold besides what was drawn, in one table; each is judged as any other call.

Every file that is right is run with the common ones at one size: thirty times as large, negated, all zero, ties, masks
of one kind, integers at their ends, a NaN, other strides. All of them are tried to reach the other side of a branch.
Where PyTorch itself fails, or gives nothing but NaN and inf, nothing is judged.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from anyshape.bench.plan import Budget
from anyshape.model.oracle import Outcome, RandomOutputError
from anyshape.results.verification import Failure, Verification
from anyshape.sizes.fit import observed_at
from anyshape.sizes.notation import Sizes
from anyshape.verification.model_reference import ModelChecker, array_of

# ---- the table


@dataclass(frozen=True)
class ValueChange:
    """Other values for leaves of one kind."""

    words: str
    change: Callable[[torch.Tensor], torch.Tensor]
    is_common: bool = False
    """Whether every file is run with it; the others are for the sides of branches."""
    is_odd: bool = False
    """Whether it may leave nothing to compute with: a file may then give NaN where PyTorch does not."""
    grows: bool = False
    """Whether results grow with it: they may be sizes."""


def _largest_magnitude(values: torch.Tensor) -> torch.Tensor:
    """The largest magnitude: masks may hold -inf."""
    return values.abs().nan_to_num(0.0, 0.0, 0.0).max()


def _values_in_ties(values: torch.Tensor) -> torch.Tensor:
    """Each is one of the first three, by chance."""
    picked = torch.randint(min(3, values.numel()), values.shape, generator=torch.Generator().manual_seed(0))
    return values.flatten()[:3][picked.to(values.device)]


def _with_nan(values: torch.Tensor) -> torch.Tensor:
    changed = values.clone(memory_format=torch.contiguous_format)
    changed.view(-1)[changed.numel() // 2] = torch.nan
    return changed


def _in_other_strides(values: torch.Tensor) -> torch.Tensor:
    """The same values, in memory as channels last or transposed."""
    if values.dim() == 4:
        return values.contiguous(memory_format=torch.channels_last)
    return values.transpose(0, -1).contiguous().transpose(0, -1) if values.dim() > 1 else values


def _expanded_slice(values: torch.Tensor) -> torch.Tensor:
    """The first slice for all, which lies in memory once."""
    return values[:1].expand(values.shape) if values.dim() > 1 else values


_common = partial(ValueChange, is_common=True)
_odd = partial(ValueChange, is_common=True, is_odd=True)
_CHANGES: dict[str, tuple[ValueChange, ...]] = {
    "floating": (
        _common("negated", torch.neg),
        ValueChange("all positive", torch.abs),
        ValueChange("all negative", lambda values: -values.abs()),
        ValueChange("raised by ten times the largest value", lambda values: values + 10 * _largest_magnitude(values)),
        ValueChange("lowered by ten times the largest value", lambda values: values - 10 * _largest_magnitude(values)),
        _common("thirty times as large", lambda values: values * 30, grows=True),
        ValueChange("a hundredth as large", lambda values: values / 100),
        _odd("all zero", torch.zeros_like),
        _common("of three values in ties", _values_in_ties),
        _odd("holding a NaN", _with_nan),
    ),
    "flag": (
        ValueChange("inverted", lambda values: (values == 0).to(values.dtype)),
        _odd("all off", torch.zeros_like),
        _odd("all on", torch.ones_like),
    ),
    # the values of integers stay among those that occur: they may be indices
    "integer": (
        _odd("all at the smallest value", lambda values: values.min().expand_as(values).clone()),
        _odd("all at the largest value", lambda values: values.max().expand_as(values).clone()),
        ValueChange("all zero", lambda values: values * 0 if bool((values == 0).any()) else values),
    ),
}
_STRIDES = (
    ValueChange("in other strides", _in_other_strides),
    ValueChange("expanded from one slice", _expanded_slice, is_odd=True),
)
"""For leaves of all kinds at once: nothing but PyTorch's own way to the result may depend on it."""
_KINDS = {
    **dict.fromkeys((torch.float64, torch.float32, torch.float16, torch.bfloat16), "floating"),
    **dict.fromkeys((torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8), "integer"),
    torch.bool: "flag",
}


def kind_of_change(value: Any) -> str | None:
    """How a leaf may change: not at all where it is empty, or a Python integer, which is a size."""
    if isinstance(value, torch.Tensor):
        kind = _KINDS.get(value.dtype) if value.numel() else None
        return "flag" if kind == "floating" and _is_mask(value) else kind
    return "floating" if isinstance(value, float) else None


def _is_mask(values: torch.Tensor) -> bool:
    """Whether floats are on or off, some of each: to negate them is nobody's call."""
    is_on = values == 1
    return bool((is_on | (values == 0)).all()) and 0 < int(is_on.sum()) < values.numel()


@dataclass(frozen=True)
class Content:
    """A change of the values of some leaves."""

    leaves: tuple[str, ...]
    change: ValueChange

    @property
    def words(self) -> str:
        return self.change.words

    def changed(self, value: Any) -> Any:
        change = self.change.change
        return change(value) if isinstance(value, torch.Tensor) else change(torch.tensor(value)).item()

    def changes_of(self, base: Outcome) -> dict[str, Any]:
        """The changed leaves; none where nothing would change."""
        if not all(kind_of_change(base.leaves[name]) for name in self.leaves):
            return {}
        changed = {name: self.changed(base.leaves[name]) for name in self.leaves}
        return {} if all(_is_identical(base.leaves[name], value) for name, value in changed.items()) else changed

    def told(self, names: Mapping[str, str]) -> str:
        """`x` and `y` negated, in the file's names."""
        return f"{' and '.join(f'`{names[leaf]}`' for leaf in self.leaves)} {self.words}"


def _is_identical(old: Any, new: Any) -> bool:
    if isinstance(old, torch.Tensor):
        return old.stride() == new.stride() and torch.equal(old, new)
    return bool(old == new)


def contents_of(leaves: Mapping[str, Any]) -> list[Content]:
    """The first change of all leaves of a kind together and of each alone, then the second ones, and so on."""
    rows = []
    for kind, changes in _CHANGES.items():
        names = tuple(name for name, value in leaves.items() if kind_of_change(value) == kind)
        alone = [(name,) for name in names] if len(names) > 1 else []
        rows += [[Content(group, change) for change in changes] for group in (names, *alone) if group]
    return [one for column in itertools.zip_longest(*rows) for one in column if one is not None]


def _common_contents(leaves: Mapping[str, Any]) -> Iterator[Content]:
    for kind, changes in _CHANGES.items():
        if names := tuple(name for name, value in leaves.items() if kind_of_change(value) == kind):
            yield from (Content(names, change) for change in changes if change.is_common)
    if names := tuple(name for name, value in leaves.items() if isinstance(value, torch.Tensor) and value.numel()):
        yield from (Content(names, change) for change in _STRIDES)


# ---- the runs


def run_contents(
    checker: ModelChecker, verification: Verification, traced: Sizes, model: ir.Model, budget: Budget
) -> Verification:
    """The runs of a right file, and those with the common contents at the traced size; what is cut is a note.

    The same at the first size at which code looks into tensors where it does not at that size.
    """
    reference, names, notes = checker.reference, valued_leaves(checker), list[str]()
    reads = reference.oracle.reads_at
    others = [check.sizes for check in verification.checks if reads(check.sizes, check.content) - reads(traced)]
    leaves = reference.run(traced).leaves
    floats = [name for leaf, name in names.items() if kind_of_change(leaves[leaf]) == "floating"]
    makes_sizes = _values_make_sizes(model, floats)
    for base in (reference.run(sizes) for sizes in (traced, *others[:1])):
        for content in _common_contents({leaf: base.leaves[leaf] for leaf in names}):
            reason = budget.refuses(reference.effort(base.sizes))
            if makes_sizes and content.change.grows:
                reason = "values make sizes, which would grow as well"
            if reason is not None:
                notes.append(f"not run with {content.told(names)}: {reason}")
            elif not verification.failures:
                budget.charge(reference.effort(base.sizes))
                verification = _with_content(checker, verification, base, content, names)
    return replace(verification, notes=(*verification.notes, *dict.fromkeys(notes)))


def valued_leaves(checker: ModelChecker) -> dict[str, str]:
    """Leaf -> input of the file, for those that hold values: an integer that is a size is not one of them."""
    scalars = checker.reference.oracle.spec.scalars
    ports = zip(checker.interface.inputs, checker.reference.leaves, strict=True)
    return {leaf: port.name for port, leaf in ports if leaf not in scalars}


def _with_content(
    checker: ModelChecker, verification: Verification, base: Outcome, content: Content, names: Mapping[str, str]
) -> Verification:
    """One run more; where all leaves together leave PyTorch nothing to compute, one for each of them."""
    changed = content.changes_of(base)
    if not changed:
        return verification
    outcome = checker.reference.with_leaves(base, changed)
    if is_telling(outcome):
        try:
            return judged_with(checker, verification, outcome, content, names)
        except RandomOutputError:
            if outcome.draws:
                raise
            # memory that nobody wrote to, as where no group of a grouped product has rows
            note = f"PyTorch's own results change from call to call with {content.told(names)}: these are not judged"
            return replace(verification, notes=(*verification.notes, note))
    for leaf in content.leaves if len(content.leaves) > 1 else ():
        alone = replace(content, leaves=(leaf,))
        verification = _with_content(checker, verification, base, alone, names)
    return verification


def is_telling(outcome: Outcome) -> bool:
    """Whether the module ran, and gave more than NaN and inf."""
    return any(not output.numel() or bool(output.isfinite().any()) for output in outcome.outputs)


def judged_with(
    checker: ModelChecker, verification: Verification, outcome: Outcome, content: Content, names: Mapping[str, str]
) -> Verification:
    """The same with one call more; what only NaN and inf make different is a note, anything else a failure."""
    result, words = checker.judge(outcome), content.told(names)
    if not isinstance(result, Failure):
        observed = observed_at(outcome.sizes, outcome.outputs)
        checks = (*verification.checks, replace(result, values=words))
        return replace(verification, checks=checks, observations=(*verification.observations, observed))
    if content.change in _STRIDES and not isinstance(checker.judge(_in_order(checker, outcome)), Failure):
        note = f"PyTorch itself gives other values with {words}: the file, those of the same numbers in order"
        return replace(verification, notes=(*verification.notes, note))
    if _is_about_nan(checker, outcome, odd=content.change.is_odd):
        what = f"`{result.output}` is another" if result.output else "the file fails"
        note = f"NaN or inf is handled otherwise than in PyTorch: {what} with {words}"
        return replace(verification, notes=(*verification.notes, note))
    # the sizes are right ones with other values: these are the cause
    failure = replace(result, sentence=f"{result.sentence} with {words}", values=words)
    return replace(verification, failures=(*verification.failures, failure))


def _in_order(checker: ModelChecker, outcome: Outcome) -> Outcome:
    """The same numbers, one after the other in memory."""
    tensors = {name: value for name, value in outcome.leaves.items() if isinstance(value, torch.Tensor)}
    ordered = {name: value.clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}
    return checker.reference.with_leaves(outcome, ordered)


def _is_about_nan(checker: ModelChecker, outcome: Outcome, *, odd: bool) -> bool:
    """Whether PyTorch meets a NaN on the way, or the file is right wherever PyTorch gives a finite number; for an odd
    content, whether the file gives a NaN.
    """
    if checker.reference.oracle.meets_nan(outcome):
        return True
    results = checker.results(outcome)
    if isinstance(results, Failure) or (odd and any(bool((one != one).any()) for one in results)):  # noqa: PLR0124
        return not isinstance(results, Failure)
    for result, output in zip(results, map(array_of, outcome.outputs), strict=True):
        if result.shape == output.shape and output.dtype.kind not in "iub":
            result[~np.isfinite(output)] = output[~np.isfinite(output)]
    return not isinstance(checker.compare(outcome, results), Failure)


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
