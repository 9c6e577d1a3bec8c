"""Which sides of its branches on values a file takes: seen by running its conditions alone.

Ifs inside the bodies of other nodes, or in functions of the file, cannot be observed from outside, and are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common as passes

from anyshape.conversion.graph.finish import SOURCE_KEY
from anyshape.runtime.session import RuntimeFailureError, Session


@dataclass(frozen=True, eq=False)
class Branch:
    """An If of the main graph: the inputs whose values its condition depends on, and the user's line, if known."""

    inputs: frozenset[str]
    place: str

    def side(self, which: bool) -> str:
        at = f"the branch at {self.place}" if self.place else "a branch"
        return f"the side of {at} that is taken where its condition is {str(which).lower()}"


Side = tuple[Branch, bool]


class Sides:
    """Which sides of its branches on values a file took, and at which sizes: seen by a session of the conditions."""

    def __init__(self, path: Path, open_file: Callable[[Path], Session], inputs: Collection[str]) -> None:
        """`inputs` are those that hold values: an integer that is a size is not one of them."""
        model = ir.load(path)
        found = [(node, _computed_from(node.inputs[0]) & set(inputs)) for node in model.graph if node.op_type == "If"]
        found = [(node, names) for node, names in found if names]
        self.branches = [Branch(frozenset(names), _place(node)) for node, names in found]
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


def _place(node: ir.Node) -> str:
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
