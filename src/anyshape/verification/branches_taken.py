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
from onnx_ir.passes import common as passes

from anyshape.model.oracle import Outcome
from anyshape.onnxfile.metadata import SOURCE_KEY
from anyshape.results.verification import Check, Verification
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes
from anyshape.testbench.plan import Budget
from anyshape.verification.contents import Content, contents_of, is_telling, judged_with, valued_leaves
from anyshape.verification.model_reference import ModelChecker

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
    valued = valued_leaves(checker)
    try:
        sides = Sides(path, open_file, valued.values())
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
    names = {leaf: name for leaf, name in valued.items() if name in deciding}
    for content, base, changed in itertools.islice(_changed_calls(bases, names), budgets.MOST_CALLS_TO_PROVOKE):
        if not sides.lacking(enough) or budget.remaining <= 0 or verification.failures:
            break
        budget.charge(checker.reference.effort(base.sizes))
        outcome = checker.reference.with_leaves(base, changed)
        if is_telling(outcome):
            sides.watch(checker.reference.inputs(outcome), outcome.sizes)
            verification = judged_with(checker, verification, outcome, content, names)
    return verification


def _changed_calls(
    bases: Sequence[Outcome], names: Collection[str]
) -> Iterator[tuple[Content, Outcome, dict[str, Any]]]:
    """Each content at each base, where it changes anything."""
    for content in contents_of({name: bases[0].leaves[name] for name in names}):
        for base in bases:
            if changed := content.changes_of(base):
                yield content, base, changed


def _watch_checks(checker: ModelChecker, checks: Iterable[Check], sides: Sides, enough: int, budget: Budget) -> None:
    for check in checks:
        if not sides.lacking(enough) or budget.remaining <= 0:
            break
        budget.charge(checker.reference.effort(check.sizes))
        outcome = checker.reference.run(check.sizes, check.content)
        sides.watch(checker.reference.inputs(outcome), outcome.sizes)


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
        found = [(node, computed_from(node.inputs[0]) & set(inputs)) for node in model.graph if node.op_type == "If"]
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


def computed_from(*values: ir.Value | None) -> set[str]:
    """The inputs of a file whose values matter for any of these; behind a Shape only where values make the shape.

    One walk for all of them: a walk for each would take time by the square of the file's length.
    """
    found: set[str] = set()
    seen: set[tuple[int, bool]] = set()
    waiting = [(value, True) for value in values]
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
