"""The dims of one file: their symbols, where they are read, and what they are in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from anyshape.errors import DeclarationError
from anyshape.freeing.records import Wanted
from anyshape.sizes.expressions import Size, dim_symbol, evaluated

_FARTHEST = 2**20
_SMALLEST_TELLING = 3


@dataclass(frozen=True)
class Dims:
    """Everything that may vary: the wanted dims, and those that the file leaves open by itself."""

    sizes: Mapping[str, int]
    sources: Mapping[Size, tuple[ir.Value, int]]
    """Symbol -> the input and the axis where its size can be read."""

    def at_file(self, size: Size) -> int | None:
        return evaluated(size, {dim_symbol(name): n for name, n in self.sizes.items()})

    def namesake(self, n: float) -> Size | None:
        """The one dim whose size in the file is this number; small numbers are everywhere and tell nothing."""
        same = [symbol for symbol in self.sources if self.at_file(symbol) == n and n >= _SMALLEST_TELLING]
        return same[0] if len(same) == 1 else None

    def agree(self, one: Size, other: Size) -> bool:
        """Whether two sizes are the same for other sizes of the dims, too."""
        if one == other:
            return True
        for extra in (1, 2, 3, 4):
            sizes = {dim_symbol(name): n + extra * k for k, (name, n) in enumerate(self.sizes.items(), 1)}
            if evaluated(one, sizes) != evaluated(other, sizes):
                return False
        return True

    def limit(self, size: Size, most: int) -> tuple[str | None, int]:
        """The dim that a size depends on, and the largest one with which the size does not exceed `most`."""
        symbols = list(size.free_symbols)
        if len(symbols) != 1 or symbols[0].name not in self.sizes:
            return None, 0
        symbol = symbols[0]
        low, high = self.sizes[symbol.name], _FARTHEST
        while low < high:  # sizes grow with their dim
            middle = (low + high + 1) // 2
            fits = (evaluated(size, {symbol: middle}) or 0) <= most
            low, high = (middle, high) if fits else (low, middle - 1)
        return symbol.name, low


def free_inputs(graph: ir.Graph, wanted: Wanted, shapes: Mapping[str, tuple[int, ...]]) -> Dims:
    """Name the axes of the inputs, in place; `shapes` are the inputs' shapes in the file."""
    sizes: dict[str, int] = {}
    sources: dict[Size, tuple[ir.Value, int]] = {}
    for value in graph.inputs:
        shape = shapes.get(str(value.name))
        if shape is None:
            continue
        row = axis_names(value, wanted.get(str(value.name)), len(shape))
        for axis, (name, size) in enumerate(zip(row, shape, strict=True)):
            if name is not None:
                if sizes.setdefault(name, size) != size:
                    raise DeclarationError(f"`{name}` is {sizes[name]} in one place of the file and {size} in another")
                sources.setdefault(dim_symbol(name), (value, axis))
        value.shape = ir.Shape([name or size for name, size in zip(row, shape, strict=True)])
    return Dims(sizes, sources)


def axis_names(value: ir.Value, row: tuple[str | None, ...] | None, rank: int) -> list[str | None]:
    """The dims of an input: the wanted ones, then those that the file has by itself."""
    own = [open_name(value, axis) for axis in range(rank)]
    wanted = row or (None,) * rank
    if len(wanted) != rank:
        raise DeclarationError(f"`{value.name}` has {rank} axes, {len(wanted)} are declared")
    names = [wish or name for wish, name in zip(wanted, own, strict=True)]
    for name in names:
        if name is not None and not name.isidentifier():
            raise DeclarationError(f"`{name}` cannot name a dim: letters, digits and _ only")
    return names


def open_name(value: ir.Value, axis: int) -> str | None:
    """How the file calls an axis that it leaves open; None for a number."""
    dim = value.shape[axis] if value.shape is not None and axis < len(value.shape) else None
    if isinstance(dim, int):
        return None
    name = dim.value if dim is not None else None
    fallback = "".join(c if c.isalnum() else "_" for c in value.name or "input")
    return name if name and name.isidentifier() else f"{fallback}_axis{axis}"
