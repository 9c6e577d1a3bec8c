"""Both sides of a branch on values: where the runs so far took one side alone, other values are tried for the other.

`if mask.any()` becomes an If in the file, and the example's values may never take its other side. So values are
negated, made large, all zero and so on, at sizes that ran, until each side was taken; each of these calls is judged as
any other. What no values reach is said. Ifs inside the bodies of other nodes, or in functions of the file, cannot be
observed from outside: they are run as it comes, and not counted.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnx_ir.passes import common as passes

from anyshape.bench.plan import Budget
from anyshape.model.oracle import Outcome
from anyshape.onnxfile.metadata import SOURCE_KEY
from anyshape.results.verification import Check, Failure, Verification
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes import budgets
from anyshape.sizes.fit import observed_at
from anyshape.sizes.notation import Sizes
from anyshape.verification.model_reference import ModelChecker

# ---- other values


@dataclass(frozen=True)
class Provocation:
    """A change of the values of some leaves."""

    leaves: tuple[str, ...]
    words: str
    change: Callable[[torch.Tensor], torch.Tensor]

    def changed(self, value: Any) -> Any:
        return self.change(value) if isinstance(value, torch.Tensor) else self.change(torch.tensor(value)).item()


def _largest_magnitude(values: torch.Tensor) -> torch.Tensor:
    """The largest magnitude: masks may hold -inf."""
    return values.abs().nan_to_num(0.0, 0.0, 0.0).max()


# The values of integers stay among those that occur: they may be indices.
_CHANGES: dict[str, tuple[tuple[str, Callable[[torch.Tensor], torch.Tensor]], ...]] = {
    "floating": (
        ("negated", torch.neg),
        ("all positive", torch.abs),
        ("all negative", lambda values: -values.abs()),
        ("raised by ten times the largest value", lambda values: values + 10 * _largest_magnitude(values)),
        ("lowered by ten times the largest value", lambda values: values - 10 * _largest_magnitude(values)),
        ("ten times as large", lambda values: values * 10),
        ("a hundredth as large", lambda values: values / 100),
        ("all zero", torch.zeros_like),
    ),
    "bool": (("inverted", torch.logical_not), ("all False", torch.zeros_like), ("all True", torch.ones_like)),
    "integer": (
        ("all at the smallest value", lambda values: values.min().expand_as(values).clone()),
        ("all at the largest value", lambda values: values.max().expand_as(values).clone()),
        ("all zero", lambda values: values * 0 if bool((values == 0).any()) else values),
    ),
}
_KINDS = {
    **dict.fromkeys((torch.float64, torch.float32, torch.float16, torch.bfloat16), "floating"),
    **dict.fromkeys((torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8), "integer"),
    torch.bool: "bool",
}


def _kind_of_change(value: Any) -> str | None:
    """How a leaf may change: not at all where it is empty, or a Python integer, which is a size."""
    if isinstance(value, torch.Tensor):
        return _KINDS.get(value.dtype) if value.numel() else None
    return "floating" if isinstance(value, float) else None


def provocations(leaves: Mapping[str, Any]) -> list[Provocation]:
    """The first change of all leaves of a kind together and of each alone, then the second ones, and so on."""
    rows = []
    for kind, changes in _CHANGES.items():
        names = tuple(name for name, value in leaves.items() if _kind_of_change(value) == kind)
        alone = [(name,) for name in names] if len(names) > 1 else []
        rows += [[Provocation(group, *change) for change in changes] for group in (names, *alone) if group]
    return [one for column in itertools.zip_longest(*rows) for one in column if one is not None]


def _changed_calls(
    bases: Sequence[Outcome], names: Collection[str]
) -> Iterator[tuple[Provocation, Outcome, dict[str, Any]]]:
    """Each provocation at each base, where it changes anything."""
    for provocation in provocations({name: bases[0].leaves[name] for name in names}):
        for base in bases:
            if all(_kind_of_change(base.leaves[name]) for name in provocation.leaves):
                changed = {name: provocation.changed(base.leaves[name]) for name in provocation.leaves}
                if not all(_is_identical(base.leaves[name], value) for name, value in changed.items()):
                    yield provocation, base, changed


def _is_identical(old: Any, new: Any) -> bool:
    return torch.equal(old, new) if isinstance(old, torch.Tensor) else bool(old == new)


# ---- the runs


def provoke(
    checker: ModelChecker,
    verification: Verification,
    traced: Sizes,
    path: Path,
    open_file: Callable[[Path], Session],
    budget: Budget,
) -> Verification:
    """The runs of a right file and those that reach the sides of its branches; what no values reach is a note."""
    started = time.monotonic()
    scalars = checker.reference.oracle.spec.scalars
    ports = zip(checker.interface.inputs, checker.reference.leaves, strict=True)
    valued = {port.name: leaf for port, leaf in ports if leaf not in scalars}
    try:
        sides = Sides(path, open_file, valued)
    except RuntimeFailureError:
        return replace(verification, notes=(*verification.notes, _UNOBSERVED))
    if not sides.branches or not verification.checks:
        return verification
    bases = _calls_to_change(checker, verification, traced)
    verification = _reach_sides(checker, verification, bases, sides, valued, budget)
    notes = () if verification.failures else _notes_on_unseen(sides.lacking())
    seconds = verification.seconds + time.monotonic() - started
    return replace(verification, seconds=seconds, notes=(*verification.notes, *notes))


def _calls_to_change(checker: ModelChecker, verification: Verification, traced: Sizes) -> list[Outcome]:
    """The calls to change: at the traced sizes, and at others of which none is 1, where axes are easily mixed up."""
    others = [sizes for sizes in verification.sizes_run if sizes != traced and min(sizes.values()) > 1]
    return [checker.reference.run(sizes) for sizes in (traced, *others[: budgets.ENOUGH_SIZES_PER_SIDE - 1])]


def _reach_sides(
    checker: ModelChecker,
    verification: Verification,
    bases: Sequence[Outcome],
    sides: Sides,
    valued: Mapping[str, str],
    budget: Budget,
) -> Verification:
    """Change values until each side was taken at enough sizes, a call is wrong, or nothing is left to try."""
    enough = len(bases)
    _watch_checks(checker, verification.checks, sides, enough, budget)
    # values of other inputs cannot change the answer
    deciding = {name for branch, _ in sides.lacking(enough) for name in branch.inputs}
    names = {leaf: name for name, leaf in valued.items() if name in deciding}
    for provocation, base, changed in itertools.islice(_changed_calls(bases, names), budgets.MOST_CALLS_TO_PROVOKE):
        if not sides.lacking(enough) or budget.remaining <= 0 or verification.failures:
            break
        budget.charge(checker.reference.effort(base.sizes))
        outcome = checker.reference.oracle.with_leaves(base, changed)
        if _is_telling(outcome):
            sides.watch(checker.reference.inputs(outcome), outcome.sizes)
            words = f"{' and '.join(f'`{names[leaf]}`' for leaf in provocation.leaves)} {provocation.words}"
            verification = _with_run(verification, outcome, checker.judge(outcome), words)
    return verification


def _is_telling(outcome: Outcome) -> bool:
    """Whether the module ran, and gave more than NaN and inf."""
    return any(not output.numel() or bool(output.isfinite().any()) for output in outcome.outputs)


def _watch_checks(checker: ModelChecker, checks: Iterable[Check], sides: Sides, enough: int, budget: Budget) -> None:
    for check in checks:
        if not sides.lacking(enough) or budget.remaining <= 0:
            break
        budget.charge(checker.reference.effort(check.sizes))
        outcome = checker.reference.run(check.sizes, check.content)
        sides.watch(checker.reference.inputs(outcome), outcome.sizes)


def _with_run(verification: Verification, outcome: Outcome, result: Check | Failure, words: str) -> Verification:
    if isinstance(result, Failure):
        # the sizes are right ones with other values: these are the cause
        failure = replace(result, sentence=f"{result.sentence} with {words}")
        return replace(verification, failures=(*verification.failures, failure))
    observed = observed_at(outcome.sizes, outcome.outputs)
    checks, observations = (*verification.checks, result), (*verification.observations, observed)
    return replace(verification, checks=checks, observations=observations)


# ---- what is said

_UNOBSERVED = "which sides of its branches the file takes could not be observed: some may not be checked"


def _notes_on_unseen(unseen: Sequence[Side]) -> tuple[str, ...]:
    found = list(dict.fromkeys(branch.side(which) for branch, which in unseen))
    if not found:
        return ()
    was, it_is = ("was", "it is") if len(found) == 1 else ("were", "they are")
    return (f"{' and '.join(found)} {was} reached by no values that were tried: {it_is} not checked",)


@dataclass(frozen=True, eq=False)
class ValueBranch:
    """An If of the main graph: the inputs whose values its condition depends on, and the user's line, if known."""

    inputs: frozenset[str]
    place: str

    def side(self, which: bool) -> str:
        at = f"the branch at {self.place}" if self.place else "a branch"
        return f"the side of {at} that is taken where its condition is {str(which).lower()}"


Side = tuple[ValueBranch, bool]


class Sides:
    """Which sides of its branches on values a file took, and at which sizes: seen by a session of the conditions."""

    def __init__(self, path: Path, open_file: Callable[[Path], Session], inputs: Collection[str]) -> None:
        """`inputs` are those that hold values: an integer that is a size is not one of them."""
        model = ir.load(path)
        found = [(node, _computed_from(node.inputs[0]) & set(inputs)) for node in model.graph if node.op_type == "If"]
        found = [(node, names) for node, names in found if names]
        self.branches = [ValueBranch(frozenset(names), _place_of_branch(node)) for node, names in found]
        self._taken: dict[Side, set[frozenset[tuple[str, int]]]] = {
            (branch, which): set() for branch in self.branches for which in (True, False)
        }
        if found:
            beside = path.with_name(f"conditions-{path.name}")  # where weights that lie outside the file are found
            _write_conditions(model, [node.inputs[0] for node, _ in found], beside)
            self._session = open_file(beside)

    def watch(self, feeds: Mapping[str, np.ndarray[Any, Any]], sizes: Mapping[str, int]) -> None:
        """Note which sides a call takes; one that fails takes none."""
        try:
            conditions = self._session.run(feeds)
        except RuntimeFailureError:
            return
        for branch, condition in zip(self.branches, conditions, strict=True):
            self._taken[branch, bool(np.ravel(condition)[0])].add(frozenset(sizes.items()))

    def lacking(self, enough: int = 1) -> list[Side]:
        """The sides that were taken at fewer sizes than that."""
        return [side for side, sizes in self._taken.items() if len(sizes) < enough]


def _place_of_branch(node: ir.Node) -> str:
    """`model.py:31`: the line of an If, or of its condition."""
    condition = node.inputs[0]
    made_by = condition.producer() if condition is not None else None
    sources = [one.metadata_props.get(SOURCE_KEY, "") for one in (node, made_by) if one is not None]
    return next((source.partition(" in ")[0] for source in sources if source), "")


_OF_SIZES = {"Shape", "Size"}
_SIZED_BY_VALUES = {"NonZero", "Compress", "Unique", "NonMaxSuppression"}


def _computed_from(value: ir.Value | None) -> set[str]:
    """The inputs of a file whose values matter for this value; behind a Shape only where values make the shape."""
    found: set[str] = set()
    seen: set[tuple[int, bool]] = set()
    waiting = [(value, True)]
    while waiting:
        one, by_value = waiting.pop()
        if one is None or (id(one), by_value) in seen:
            continue
        seen.add((id(one), by_value))
        node = one.producer()
        if node is None:
            found |= {one.name or ""} if by_value and one.is_graph_input() else set()
            continue
        matters = node.op_type in _SIZED_BY_VALUES or (by_value and node.op_type not in _OF_SIZES)
        bodies = [a.as_graph() for a in node.attributes.values() if a.type == ir.AttributeType.GRAPH]
        waiting += [(read, matters) for read in (*node.inputs, *(value for body in bodies for value in body.outputs))]
    return found


def _write_conditions(model: ir.Model, conditions: Sequence[ir.Value | None], path: Path) -> None:
    """Cut a model down to these conditions: running it is no dearer than they are."""
    model.graph.outputs.clear()
    for index, condition in enumerate(conditions):
        node = ir.node("Identity", [condition])  # a condition may be an input, which cannot be an output as well
        node.outputs[0].name, node.outputs[0].type = f"anyshape.condition.{index}", ir.TensorType(ir.DataType.BOOL)
        model.graph.append(node)
        model.graph.outputs.append(node.outputs[0])
    passes.RemoveUnusedNodesPass()(model)
    ir.save(model, path)
