"""Which factors each axis of a value is the product of, in their order; axes that come through a node keep theirs."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from anyshape.sizes.expressions import Factors, Size, from_ir, is_number, product


class FactorTable:
    """Only what somebody has split or merged is written down; any other size is its own factor."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, tuple[Factors, ...]] = {}
        self._orders: dict[Size, Factors] = {}

    def of(self, value: ir.Value) -> tuple[Factors, ...]:
        return self._known.get(value) or tuple((size,) for size in from_ir(value.shape) or ())

    def set(self, value: ir.Value, factors: Sequence[Factors]) -> None:
        self._known[value] = tuple(factors)
        self._orders |= {product(axis): axis for axis in factors if len(axis) > 1}

    def order(self, size: Size) -> Factors:
        """The factors of a size in the order in which they were last met."""
        return self._orders.get(size, (size,))

    def carry(self, node: ir.Node) -> None:
        """An axis that came through a node unchanged keeps its factors."""
        known = [self._known[value] for value in node.inputs if value is not None and value in self._known]
        for output in node.outputs:
            shape = from_ir(output.shape)
            if output in self._known or not known or not shape:
                continue
            found = tuple(_came_through(size, axis - len(shape), known) for axis, size in enumerate(shape))
            if any(len(factors) > 1 for factors in found):
                self._known[output] = found


def _came_through(size: Size, axis: int, inputs: Sequence[tuple[Factors, ...]]) -> Factors:
    """`axis` counts from the end, as broadcasting does; another axis of the same size comes second."""
    if is_number(size):
        return (size,)
    for rows in inputs:
        if len(rows) >= -axis and product(rows[axis]) == size:
            return rows[axis]
    every = [factors for rows in inputs for factors in rows if product(factors) == size]
    return every[0] if every else (size,)
