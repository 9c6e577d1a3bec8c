"""Contents: what a call may hold besides what was drawn, in one table; each is judged as any other call.

The common ones are run with every file: thirty times as large, negated, all zero, ties, masks of one kind, integers at
their ends, a NaN, an infinity, other strides. All of them are tried to reach the other side of a branch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from anyshape.model.oracle import Outcome, is_identical
from anyshape.results.verification import Failure, Verification
from anyshape.sizes.fit import observed_at
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
    has_no_number: bool = False
    """Whether a NaN or an infinity is put in: what comes out may be nothing else, and is compared all the same."""
    grows: bool = False
    """Whether results grow with it: they may be sizes."""


def largest_magnitude(values: torch.Tensor) -> torch.Tensor:
    """The largest magnitude: masks may hold -inf."""
    return values.abs().nan_to_num(0.0, 0.0, 0.0).max()


def _values_in_ties(values: torch.Tensor) -> torch.Tensor:
    """Each is one of the first three, by chance."""
    picked = torch.randint(min(3, values.numel()), values.shape, generator=torch.Generator().manual_seed(0))
    return values.flatten()[:3][picked.to(values.device)]


def _values_in_halves(values: torch.Tensor) -> torch.Tensor:
    """Whole numbers and halves up to 3, as far apart as the values are: where roundings, signs and orders meet ties."""
    largest = largest_magnitude(values)
    return (values * (6 / largest)).round() / 2 if bool(largest > 0) else values


def _with_one(odd: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def changed(values: torch.Tensor) -> torch.Tensor:
        copied = values.clone(memory_format=torch.contiguous_format)
        copied.view(-1)[copied.numel() // 2] = odd
        return copied

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
        ValueChange("raised by ten times the largest value", lambda values: values + 10 * largest_magnitude(values)),
        ValueChange("lowered by ten times the largest value", lambda values: values - 10 * largest_magnitude(values)),
        _common("thirty times as large", lambda values: values * 30, grows=True),
        ValueChange("a hundredth as large", lambda values: values / 100),
        # where exp overflows, and thresholds lie that are no numbers of the code
        _common("a thousand times as large", lambda values: values * 1000, grows=True),
        _odd("all zero", torch.zeros_like),
        _common("of three values in ties", _values_in_ties),
        _common("rounded to halves", _values_in_halves),
        _odd("holding a NaN", _with_one(math.nan), has_no_number=True),
        _odd("holding inf", _with_one(math.inf), has_no_number=True, grows=True),
        _odd("holding -inf", _with_one(-math.inf), has_no_number=True, grows=True),
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
        return {} if all(is_identical(base.leaves[name], value) for name, value in changed.items()) else changed

    def told(self, names: Mapping[str, str]) -> str:
        """`x` and `y` negated, in the file's names."""
        return f"{' and '.join(f'`{names[leaf]}`' for leaf in self.leaves)} {self.words}"


def contents_of(leaves: Mapping[str, Any]) -> list[Content]:
    """The first change of all leaves of a kind together and of each alone, then the second ones, and so on."""
    rows = []
    for kind, changes in _CHANGES.items():
        names = tuple(name for name, value in leaves.items() if kind_of_change(value) == kind)
        alone = [(name,) for name in names] if len(names) > 1 else []
        rows += [[Content(group, change) for change in changes] for group in (names, *alone) if group]
    return [one for column in itertools.zip_longest(*rows) for one in column if one is not None]


def common_contents(leaves: Mapping[str, Any], *, in_strides: bool = True) -> Iterator[Content]:
    for kind, changes in _CHANGES.items():
        if names := tuple(name for name, value in leaves.items() if kind_of_change(value) == kind):
            yield from (Content(names, change) for change in changes if change.is_common)
    if in_strides and (
        names := tuple(name for name, value in leaves.items() if isinstance(value, torch.Tensor) and value.numel())
    ):
        yield from (Content(names, change) for change in _STRIDES)


# ---- the judgement of a call


def valued_leaves(checker: ModelChecker) -> dict[str, str]:
    """Leaf -> input of the file, for those that hold values: an integer that is a size is not one of them, nor noise,
    which is never anything else.
    """
    spec = checker.reference.oracle.spec
    ports = zip(checker.interface.inputs, checker.reference.leaves, strict=True)
    return {leaf: port.name for port, leaf in ports if leaf not in spec.scalars and leaf not in spec.draws}


def is_telling(outcome: Outcome) -> bool:
    """Whether the module ran, and gave more than NaN and inf."""
    return any(not output.numel() or bool(output.isfinite().any()) for output in outcome.outputs)


ABOUT_NAN = "NaN or inf is handled otherwise than in PyTorch"
"""What a note about that begins with."""


def judged_with(
    checker: ModelChecker, verification: Verification, outcome: Outcome, content: Content, names: Mapping[str, str],
    place: Callable[[Outcome, str], str] = lambda *_: "",
) -> Verification:  # fmt: skip
    """The same with one call more; what only NaN and inf make different is a note, anything else a failure.

    `place` tells where a call breaks a rule.
    """
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
        note = f"{ABOUT_NAN}: {what} with {words}{place(outcome, result.rule)}"
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
