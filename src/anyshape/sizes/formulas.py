"""Numbers that follow from sizes, as a user writes them: `1/batch`, `sqrt(seq)`, `range(seq)/seq`; nothing is executed.

One walk over the formula serves all who compute with it: on NumPy's arrays, and as nodes of a graph. Its operations
are ONNX's; all is computed in float64, as Python does it.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from anyshape.errors import DeclarationError
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes

T = TypeVar("T")
Apply = Callable[[str, list[T]], T]
"""An operation of ONNX on what it is given."""
_NUMPY: Mapping[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power, "Min": np.minimum,
    "Max": np.maximum, "Neg": np.negative, "Sqrt": np.sqrt, "Log": np.log, "Exp": np.exp, "Floor": np.floor,
    "Ceil": np.ceil, "Round": np.round, "Abs": np.abs, "Sin": np.sin, "Cos": np.cos, "Range": np.arange,
}  # fmt: skip
_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow",
}  # fmt: skip
_LOGARITHMS = {"log2": 2.0, "log10": 10.0}
_TWO = {"min": "Min", "max": "Max"}
_ONE = {name.lower(): name for name in ("Sqrt", "Log", "Exp", "Floor", "Ceil", "Round", "Abs", "Sin", "Cos", "Range")}
_HOW = f"use dims, numbers, pi, + - * / // % ** and {', '.join((*_ONE, *_LOGARITHMS, *_TWO))}"


@dataclass(frozen=True)
class SizeFormula:
    """One number, several of them (`0, seq`), or a ramp (`range(seq)/seq`)."""

    text: str

    @functools.cached_property
    def _tree(self) -> ast.expr:
        return ast.parse(self.text, mode="eval").body

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The dims in it."""
        called = {id(node.func) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        found = [node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name) and id(node) not in called]
        return tuple(name for name in dict.fromkeys(found) if name != "pi")

    @functools.cached_property
    def is_ramp(self) -> bool:
        return any(isinstance(node, ast.Name) and node.id == "range" for node in ast.walk(self._tree))

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number by its form, whatever the sizes are."""
        return not any(isinstance(node, (ast.Div, ast.Call, ast.Pow)) for node in ast.walk(self._tree))

    def parts(self, leaf: Callable[[str | float], T], apply: Apply[T]) -> list[T]:
        """What is computed for each of its numbers: `leaf` is asked for a name or a number."""
        entries = self._tree.elts if isinstance(self._tree, ast.Tuple) else [self._tree]
        return [_value_of(entry, leaf, apply) for entry in entries]

    def values(self, sizes: Sizes, length: int | None = None) -> Any:
        """Its numbers at these sizes; `length` is how far a ramp goes, if not as far as it says."""

        def apply(operator: str, given: list[Any]) -> Any:
            if operator == "Range" and length is not None:
                given = [length]
            return _NUMPY[operator](*given)

        known = {**sizes, "pi": math.pi}
        with np.errstate(all="ignore"):
            found = self.parts(lambda entry: np.float64(known[entry] if isinstance(entry, str) else entry), apply)
        return found[0] if len(found) == 1 else np.stack(found)


def parse_formula(text: str) -> SizeFormula:
    """A sentence where it is none."""
    formula = SizeFormula(text.strip() if len(text) <= budgets.LONGEST_EXPRESSION else "")
    try:
        formula.parts(lambda _: 0, lambda _, given: len(given))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise DeclarationError(f"`{text[: budgets.LONGEST_EXPRESSION]}` is no number of dims: {_HOW}") from None
    return formula


def _value_of(node: ast.expr, leaf: Callable[[str | float], T], apply: Apply[T]) -> T:
    match node:
        case ast.Name(id=name):
            return leaf(name)
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return leaf(float(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return apply("Neg", [_value_of(operand, leaf, apply)])
        case ast.BinOp(left=left, op=operator, right=right):
            return _value_of_pair(type(operator), [_value_of(side, leaf, apply) for side in (left, right)], apply)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            given = [_value_of(one, leaf, apply) for one in args]
            if len(given) == 1 and name in _LOGARITHMS:
                return apply("Div", [apply("Log", given), apply("Log", [leaf(_LOGARITHMS[name])])])
            if name in (_ONE if len(given) == 1 else _TWO if len(given) == 2 else ()):
                return apply({**_ONE, **_TWO}[name], given)
    raise ValueError(ast.dump(node))


def _value_of_pair(operator: type[ast.operator], sides: list[T], apply: Apply[T]) -> T:
    if operator not in (ast.FloorDiv, ast.Mod):
        if operator not in _BINARY:
            raise ValueError(operator)
        return apply(_BINARY[operator], sides)
    whole = apply("Floor", [apply("Div", sides)])
    return whole if operator is ast.FloorDiv else apply("Sub", [sides[0], apply("Mul", [sides[1], whole])])
