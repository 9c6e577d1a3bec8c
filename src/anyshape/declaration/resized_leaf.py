"""One valid call as leaves, and what is to become of one of them at other sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from anyshape.sizes.notation import Expression


@dataclass(frozen=True)
class Example:
    """One valid call, as leaves, and which axis follows which dim."""

    leaves: Mapping[str, Any]
    """By dotted name: tensors and anything else."""
    axes: Mapping[str, tuple[Expression | None, ...]]
    """Of tensor leaves: one entry per axis, None where it is static; a leaf that is not here is static."""
    scalars: Mapping[str, Expression]
    """Of the Python integers that follow dims."""
    sizes: Mapping[str, int]
    """Of every dim, in this example."""


@dataclass(frozen=True)
class ValueRange:
    """Integer values of one leaf are bounded by dims: `< dim` for an index, `<= dim` for a length."""

    kind: Literal["index", "length"]
    dims: tuple[str, ...]

    def highest(self, sizes: Mapping[str, int]) -> int:
        """The highest value that is valid at these sizes; 0 where none is."""
        return max(min(sizes[dim] for dim in self.dims) - (self.kind == "index"), 0)


@dataclass(frozen=True)
class LeafResizing:
    """One leaf to resize. The tensor is wide (bool, int64, float64 or complex128) and on the CPU."""

    example: Example
    sizes: Mapping[str, int]
    tensor: Tensor
    axes: tuple[Expression | None, ...]
    shape: tuple[int, ...]
    range: ValueRange | None
    is_second: bool
    level: int
    tolerance: float
    generator: torch.Generator

    @property
    def is_integer(self) -> bool:
        return self.tensor.dtype == torch.int64

    @property
    def is_float(self) -> bool:
        return self.tensor.is_floating_point() or self.tensor.is_complex()

    @property
    def is_same_shape(self) -> bool:
        return self.shape == tuple(self.tensor.shape)

    @property
    def dynamic(self) -> list[int]:
        return [axis for axis, expression in enumerate(self.axes) if expression is not None]

    @property
    def moving(self) -> list[int]:
        """The axes to make slices for: those whose size changes; for a second content every dynamic one."""
        if self.is_second:
            return self.dynamic
        return [axis for axis, size in enumerate(self.shape) if size != self.tensor.shape[axis]]

    @property
    def is_square(self) -> bool:
        """Whether the last two axes follow the same dim, or are static and of one size."""
        if len(self.axes) < 2:
            return False
        rows, columns = self.axes[-2:]
        if rows is None or columns is None:
            return rows is columns and self.shape[-1] == self.shape[-2]
        return not set(rows.names).isdisjoint(columns.names)
