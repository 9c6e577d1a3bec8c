"""What a file costs, as plain values: formulas for the shape of every value, and for what every node takes.

Formulas stand once, in one table, and all else names them by their place there: a page computes the table anew for
each move of a slider, and looks up the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from anyshape.costs.liveness import peak_bytes
from anyshape.costs.written_formulas import WrittenFormula
from anyshape.sizes.notation import Sizes

State = Literal["held", "unknown", "contradicted", "not run"]
"""`held`: the formula was the real shape at all sizes that were run; `unknown`: there is none."""


@dataclass(frozen=True)
class DimCosts:
    """A dim, and the sizes that it may take."""

    name: str
    first: int
    last: int | None
    step: int
    sizes: tuple[int, ...] | None
    start: int

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "sizes": None if self.sizes is None else list(self.sizes)}


@dataclass(frozen=True)
class ValueCosts:
    """One value of the file's graph; weights are none of them."""

    name: str
    type: str
    item: float | None
    """Bytes of each element; None where it differs from element to element."""
    shape: tuple[int, ...] | None
    """A formula for each axis."""
    state: State

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "shape": None if self.shape is None else list(self.shape)}


@dataclass(frozen=True)
class NodeCosts:
    """One node of the graph, and what it takes."""

    name: str
    op: str
    inputs: tuple[int, ...]
    """Values, -1 for weights and for what is left out."""
    outputs: tuple[int, ...]
    flops: int | None
    """A formula, as the next ones."""
    moved: int | None
    """Bytes that are read and written."""
    scope: tuple[str, ...] = ()
    source: str | None = None
    mark: str = ""
    inner: int | None = None
    """Bytes that its bodies hold at a time, beside what it takes and gives."""
    captured: tuple[int, ...] = ()
    """Values that its bodies read from around them."""
    weights: tuple[str, ...] = ()
    """Its constant inputs, each `name float32[768, 3072]`."""
    fault: str | None = None
    """The finding that is about it."""

    def to_dict(self) -> dict[str, Any]:
        rows = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {name: row for name, row in rows.items() if name not in _RARE or row not in (None, [])}


_RARE = ("inner", "captured", "weights", "fault")
"""What most nodes do not have is left out."""


@dataclass(frozen=True)
class Growth:
    """How the whole grows with the dims: `O(batch*seq**2)`, and the formulas behind; None where not all is known."""

    memory: str | None
    flops: str | None
    memory_formula: str | None
    flops_formula: str | None


@dataclass(frozen=True)
class FileCosts:
    """All of it."""

    dims: tuple[DimCosts, ...]
    relations: tuple[WrittenFormula, ...]
    expressions: tuple[WrittenFormula, ...]
    values: tuple[ValueCosts, ...]
    nodes: tuple[NodeCosts, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weights: int
    """Bytes of all weights."""
    held_at: tuple[Sizes, ...]
    growth: Growth

    def numbers(self, sizes: Sizes) -> list[int | None]:
        """What each formula is at these sizes; None where it has no value, as one that divides by zero."""
        return [formula.value(sizes) for formula in self.expressions]

    def flops(self, sizes: Sizes) -> int | None:
        """Operations of a run; None where an operator is unknown."""
        numbers = self.numbers(sizes)
        counts = [None if node.flops is None else numbers[node.flops] for node in self.nodes]
        return None if None in counts else sum(count for count in counts if count is not None)

    def memory(self, sizes: Sizes) -> float | None:
        """The most bytes that values take at a time; None where one of them is unknown."""
        numbers = self.numbers(sizes)
        sized = [_bytes_of(value, numbers) for value in self.values]
        inner = [0 if node.inner is None else numbers[node.inner] for node in self.nodes]
        lives = [((*node.inputs, *node.captured), node.outputs) for node in self.nodes]
        if any(one is None for one in (*sized, *inner)):
            return None
        known = [one for one in sized if one is not None]
        return peak_bytes(lives, known, [one or 0 for one in inner], self.inputs, self.outputs)

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "dims": [dim.to_dict() for dim in self.dims],
            "relations": [vars(one) for one in self.relations],
            "expressions": [vars(one) for one in self.expressions],
            "values": [value.to_dict() for value in self.values],
            "nodes": [node.to_dict() for node in self.nodes],
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "weights": self.weights,
            "held_at": [dict(sizes) for sizes in self.held_at],
            "growth": dict(vars(self.growth)),
        }


def _bytes_of(value: ValueCosts, numbers: Sequence[int | None]) -> float | None:
    if value.shape is None or value.item is None:
        return None
    total: float = value.item
    for place in value.shape:
        size = numbers[place]
        if size is None:
            return None
        total *= size
    return total


def shares(costs: FileCosts) -> Mapping[State, int]:
    """How many values are in each state."""
    found: dict[State, int] = {"held": 0, "unknown": 0, "contradicted": 0, "not run": 0}
    for value in costs.values:
        found[value.state] += 1
    return found
