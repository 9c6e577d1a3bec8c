"""What builds values out of observations: the graph to put them in, the points, and numbers as nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy

from anyshape.conversion.lifting.constants_real_numbers import FUNCTIONS, Law
from anyshape.freeing.builder import Builder
from anyshape.sizes.expressions import ONE, Shape, Size, from_ir, is_number, number
from anyshape.sizes.fit_points import Points

Arrays = Sequence[Any]
"""A constant at each observation."""
_DOUBLE = ir.DataType.DOUBLE


class UnexplainedError(Exception):
    """No pattern gives what was seen."""


class ShortTableError(UnexplainedError):
    """A table of which every observation is a part, but which ends before the declared sizes do."""


@dataclass(frozen=True)
class Maker:
    """Builds values out of what was seen at these points."""

    build: Builder
    points: Points
    tops: Mapping[Size, int]
    """The largest size of each dim, where one was declared."""

    def joined(self, operator: str, one: ir.Value, other: ir.Value) -> ir.Value:
        """Two values of the same rank and type, which broadcast."""
        pairs = zip(shape_of(one), shape_of(other), strict=True)
        return self.build.node(operator, [one, other], tuple(b if a == 1 else a for a, b in pairs), dtype=one.dtype)

    def sizes(self, sizes: Sequence[Size], target: tuple[int, ...]) -> ir.Value:
        """Whole numbers as a tensor of this shape."""
        flat = self.build.vector(sizes)
        return flat if len(target) == 1 else self.build.reshaped(flat, target, numbers_of(target))

    def laws(self, laws: Sequence[Law], target: tuple[int, ...]) -> ir.Value:
        """Real numbers as a tensor of this shape, in double precision."""
        parts = [self._law(law) for law in laws]
        flat = parts[0]
        if len(parts) > 1:
            flat = self.build.node("Concat", parts, (number(len(parts)),), dtype=_DOUBLE, attributes={"axis": 0})
        return flat if len(target) == 1 else self.build.reshaped(flat, target, numbers_of(target))

    def _law(self, law: Law) -> ir.Value:
        if is_number(law.size):
            return self.build.constant(np.array([law.factor * int(law.size) + law.start]))
        # the step of a ramp with one entry, as 1/(n - 1), is never used, but must be a number
        size = sympy.Max(law.size, 1) if law.size.is_Add else law.size
        value = self.build.cast(self.build.size(size), _DOUBLE, (ONE,))
        for operator in FUNCTIONS[law.function][0]:
            value = self.build.node(operator, [value], (ONE,), dtype=_DOUBLE)
        if law.factor != 1:
            value = self.joined("Mul", value, self.build.constant(np.array([law.factor])))
        return value if law.start == 0 else self.joined("Add", value, self.build.constant(np.array([law.start])))


def shape_of(value: ir.Value) -> Shape:
    return from_ir(value.shape) or ()


def numbers_of(shape: Sequence[int]) -> Shape:
    return tuple(number(n) for n in shape)
