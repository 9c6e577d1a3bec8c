"""Sizes as expressions of the dims: a number, `batch`, `2*seq + 1`, and products whose order is kept.

The order of a product matters: `batch*heads` and `heads*batch` are the same number, but lie differently in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from anyshape.errors import AnyshapeError
from anyshape.sizes import budgets

Size = Any
"""A sympy expression; sympy has no types."""
Shape = tuple[Size, ...]
Factors = tuple[Size, ...]
"""What a size is the product of, in the order in which it lies in memory."""

ONE = sympy.Integer(1)


def dim_symbol(name: str) -> Size:
    return sympy.Symbol(name, integer=True, positive=True)


def number(n: int) -> Size:
    return sympy.Integer(int(n))


def is_number(size: Size) -> bool:
    return bool(size.is_Integer)


def product(sizes: Iterable[Size]) -> Size:
    result = ONE
    for size in sizes:
        result *= size
    return result


def from_ir(shape: ir.Shape | None) -> Shape | None:
    """The shape of a value as expressions, None where not even the rank is known."""
    return None if shape is None else tuple(from_dim(dim) for dim in shape)


def to_ir(shape: Sequence[Size]) -> ir.Shape:
    return ir.Shape([int(size) if is_number(size) else ir.SymbolicDim(size) for size in shape])


def from_dim(dim: int | ir.SymbolicDim) -> Size:
    if isinstance(dim, int):
        return number(dim)
    if dim.value is None:
        return sympy.Dummy("unknown", integer=True, positive=True)  # no two are equal, unlike symbols of one name
    if len(dim.value) > budgets.LONGEST_SIZE_TEXT:
        raise AnyshapeError("a size of this file is too long an expression to work with")
    return _tidy_size(dim._expr)  # noqa: SLF001  the expression behind a dim has no public name


@functools.lru_cache(maxsize=4096)
def _tidy_size(size: Size) -> Size:
    """With symbols that are known to be positive, floors of floors merged and maxima with 0 left out."""
    size = sympy.sympify(size)
    size = size.xreplace({s: dim_symbol(s.name) for s in size.free_symbols if not isinstance(s, sympy.Dummy)})
    if sum(1 for _ in sympy.preorder_traversal(size)) > budgets.MOST_LEAVES_OF_A_SIZE:
        raise AnyshapeError("a size of this file is too large an expression to work with")
    size = size.replace(sympy.Max, _without_zero)
    size = size.replace(sympy.floor, _merged_floor)
    return sympy.expand(size) if size.is_Add else size


def _without_zero(*args: Size) -> Size:
    rest = [arg for arg in args if arg != 0]
    return rest[0] if len(rest) == 1 else sympy.Max(*args)


def _merged_floor(inner: Size) -> Size:
    """floor((floor(a/b) + c)/d) is floor((a + b*c)/(b*d)): strided layers on top of each other stay short."""
    numerator, denominator = sympy.together(inner).as_numer_denom()
    if not (denominator.is_Integer and denominator > 0):
        return sympy.floor(inner)
    floors = [term for term in sympy.Add.make_args(numerator) if isinstance(term, sympy.floor)]
    if len(floors) == 1:
        rest = numerator - floors[0]
        a, b = sympy.together(floors[0].args[0]).as_numer_denom()
        if rest.is_Integer and b.is_Integer:
            return sympy.floor(sympy.together((a + b * rest) / (b * denominator)))
    return sympy.floor(inner)


def evaluated(size: Size, sizes: Mapping[Size, int]) -> int | None:
    """The number that a size is for these sizes of the dims; None where it depends on something else."""
    if is_number(size):
        return int(size)
    if not size.free_symbols <= set(sizes):
        return None
    value = size.xreplace({symbol: sympy.Integer(n) for symbol, n in sizes.items()})
    return int(value) if value.is_Integer else None


def spelled(size: Size) -> str:
    """As a reader writes it: `seq//2 + 1`, not `floor(seq/2) + 1`."""
    return str(_Printer().doprint(size))


class _Printer(StrPrinter):  # type: ignore[misc]
    def _print_floor(self, expr: Size) -> str:
        numerator, denominator = sympy.together(expr.args[0]).as_numer_denom()
        if not denominator.is_Integer:
            return f"floor({self._print(expr.args[0])})"
        text = self._print(numerator)
        return f"{text if numerator.is_Atom else f'({text})'}//{self._print(denominator)}"

    def parenthesize(self, item: Size, level: int, strict: bool = False) -> str:
        text = str(super().parenthesize(item, level, strict=strict))
        return f"({text})" if isinstance(item, sympy.floor) and level > PRECEDENCE["Add"] else text
