"""What the short tensors of a graph hold, as formulas of sizes: what `Shape` gives, and all that is made of it.

A tensor is an array of sympy's expressions, so that NumPy moves them about, and sympy computes with them. Numbers with
fractions are exact here, where the runtime rounds: only such whose fractions are short are known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from anyshape.onnxfile.graph import attribute, is_standard
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Shape, Size, number

Numbers = Any
"""An array of expressions."""


class Choice(sympy.Function):  # type: ignore[misc]
    """One size where a condition holds, else another: sympy's own form of it simplifies, which may take minutes."""

    nargs = 3

    @classmethod
    def eval(cls, condition: Size, one: Size, other: Size) -> Size | None:
        if condition in (sympy.true, sympy.false) or one == other:
            return other if condition == sympy.false else one
        return None

    def _eval_is_integer(self) -> bool | None:
        return all(part.is_integer for part in self.args[1:]) or None

    def _eval_is_positive(self) -> bool | None:
        return all(part.is_positive for part in self.args[1:]) or None

    def _eval_is_nonnegative(self) -> bool | None:
        return all(part.is_nonnegative for part in self.args[1:]) or None


class SizeNumbers:
    """What is known so far; values are learned in the order of the graph."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Numbers | None] = {}

    def of(self, value: ir.Value | None) -> Numbers | None:
        """What a value holds; None where that is not known, or is too much."""
        if value is None:
            return None
        if value not in self._known:
            tensor = ir.convenience.get_const_tensor(value)
            self._known[value] = None if tensor is None else _constant_numbers(tensor)
        return self._known[value]

    def row(self, value: ir.Value | None) -> tuple[Size, ...] | None:
        """The same, one after the other."""
        found = self.of(value)
        return None if found is None else tuple(found.ravel())

    def assign(self, value: ir.Value, numbers: Numbers | None) -> None:
        self._known[value] = numbers

    def learn(self, node: ir.Node, shape_of: Callable[[ir.Value], Shape | None]) -> None:
        """What the first result of a node holds."""
        if not is_standard(node) or not node.outputs:
            return
        try:
            found = self._result_of(node, shape_of)
        except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError, AttributeError, RecursionError):
            found = None
        found = (
            None if found is None else np.asarray(found, dtype=object)
        )  # NumPy gives what is alone without its array
        if found is not None and found.size <= budgets.LONGEST_SHORT_CONSTANT and all(map(_is_short, found.ravel())):
            self._known[node.outputs[0]] = found

    def _result_of(self, node: ir.Node, shape_of: Callable[[ir.Value], Shape | None]) -> Numbers | None:
        first = node.inputs[0] if node.inputs else None
        if node.op_type in ("Shape", "Size"):
            shape = None if first is None else shape_of(first)
            return None if shape is None else _sizes_read(node, shape)
        rule = _RULES.get(node.op_type)
        given = [self.of(value) for value in node.inputs]
        missing = any(found is None for found, value in zip(given, node.inputs, strict=True) if value is not None)
        return None if rule is None or missing or not given else rule(node, *given)


def is_condition(entry: Size) -> bool:
    """Whether it is true or false, not a number; sympy's symbols may be both."""
    return isinstance(entry, (Relational, BooleanAtom, BooleanFunction))


def _is_short(entry: Size) -> bool:
    return len(entry.atoms(Choice)) <= budgets.MOST_CHOICES_OF_A_SIZE


def whole_sizes(numbers: Numbers | None) -> tuple[int, ...] | None:
    """As plain numbers; None where sizes decide them."""
    if numbers is None or not all(getattr(entry, "is_Integer", False) for entry in numbers.ravel()):
        return None
    return tuple(int(entry) for entry in numbers.ravel())


def _array(entries: Any, shape: tuple[int, ...]) -> Numbers:
    found = np.empty(len(entries), dtype=object)
    found[:] = entries
    return found.reshape(shape)


def _constant_numbers(tensor: ir.TensorProtocol) -> Numbers | None:
    if tensor.size > budgets.LONGEST_SHORT_CONSTANT or tensor.dtype == ir.DataType.STRING:
        return None
    try:
        array = tensor.numpy()
        entries = [_exact_number(entry) for entry in array.ravel().tolist()]
    except Exception:  # noqa: BLE001  a file is data: a tensor that contradicts itself has no numbers
        return None
    return None if None in entries else _array(entries, array.shape)


def _exact_number(entry: Any) -> Size | None:
    if isinstance(entry, bool):
        return sympy.true if entry else sympy.false
    if isinstance(entry, int):
        return number(entry)
    exact = Fraction(entry) if isinstance(entry, float) and abs(entry) < 2**53 else None
    return None if exact is None or exact.denominator > _LONGEST_FRACTION else sympy.Rational(exact)


_LONGEST_FRACTION = 1 << 10
"""A number whose fraction is longer is rounded by whatever is done with it."""


def _sizes_read(node: ir.Node, shape: Shape) -> Numbers:
    if node.op_type == "Size":
        return _array([functools.reduce(lambda a, b: a * b, shape, number(1))], ())
    part = shape[attribute(node, "start", 0) : attribute(node, "end", None)]
    return _array(list(part), (len(part),))


# ---- numbers computed


def truncated_quotient(left: Size, right: Size) -> Size:
    """ONNX divides whole numbers towards zero."""
    if right == 0:
        raise ZeroDivisionError
    if (left.is_nonnegative and right.is_positive) or (left.is_nonpositive and right.is_negative):
        return sympy.floor(left / right)
    if left.is_nonnegative or right.is_positive is None:
        raise ValueError("of unknown sign")
    below = -sympy.floor(-left / right)
    return below if left.is_nonpositive else Choice(left >= 0, sympy.floor(left / right), below)


def _quotient(node: ir.Node, left: Numbers, right: Numbers) -> Numbers | None:
    dtype = node.outputs[0].dtype or node.inputs[0].dtype  # type: ignore[union-attr]
    if dtype is None or dtype in _NARROW:
        return None
    return _of_each(lambda a, b: a / b if dtype.is_floating_point() else truncated_quotient(a, b))(node, left, right)


_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
"""Types that do not hold every size."""


def _remainder(node: ir.Node, left: Numbers, right: Numbers) -> Numbers | None:
    if attribute(node, "fmod", 0) and not all(entry.is_nonnegative for entry in (*left.ravel(), *right.ravel())):
        return None
    return _of_each(sympy.Mod)(node, left, right)


def _cast(node: ir.Node, given: Numbers) -> Numbers | None:
    to = ir.DataType(attribute(node, "to"))
    if to in _NARROW or to == ir.DataType.STRING:
        return None
    if to == ir.DataType.BOOL:
        return _of_each(lambda entry: entry if is_condition(entry) else sympy.Ne(entry, 0))(node, given)
    given = _of_each(lambda entry: Choice(entry, number(1), number(0)) if is_condition(entry) else entry)(node, given)
    return given if to.is_floating_point() else _of_each(_whole_part)(node, given)


def _whole_part(entry: Size) -> Size:
    return entry if entry.is_integer else truncated_quotient(entry, number(1))


def _power(base: Size, exponent: Size) -> Size:
    if not (exponent.is_Integer and 0 <= exponent <= budgets.LARGEST_POWER):
        raise ValueError(exponent)
    return base**exponent


def _of_each(compute: Callable[..., Any]) -> Callable[..., Numbers]:
    return lambda _, *given: np.asarray(np.frompyfunc(compute, len(given), 1)(*given), dtype=object)


def _fold_by(compute: Callable[..., Any]) -> Callable[..., Numbers]:
    return lambda _, *given: functools.reduce(
        lambda a, b: np.asarray(np.frompyfunc(compute, 2, 1)(a, b), dtype=object), given
    )


def _reduced(compute: Callable[[Any, Any], Any]) -> Callable[..., Numbers | None]:
    def reduce_by(node: ir.Node, given: Numbers, axes: Numbers | None = None) -> Numbers | None:
        named = attribute(node, "axes") if axes is None else whole_sizes(axes)
        if (
            given.ndim != 1
            or named not in (None, (), (0,), (-1,), [0], [-1])
            or attribute(node, "noop_with_empty_axes")
        ):
            return None
        total = functools.reduce(compute, given.ravel())
        return _array([total], (1,) if attribute(node, "keepdims", 1) else ())

    return reduce_by


# ---- numbers moved


def _gathered(node: ir.Node, given: Numbers, places: Numbers) -> Numbers | None:
    index = whole_sizes(places)
    axis = attribute(node, "axis", 0)
    return None if index is None else np.take(given, np.reshape(index, places.shape).astype(np.int64), axis=axis)


def _sliced(node: ir.Node, given: Numbers, *rest: Numbers) -> Numbers | None:
    if not rest:  # before opset 10
        starts, ends, axes = (attribute(node, name) for name in ("starts", "ends", "axes"))
        rows = [tuple(starts), tuple(ends), tuple(axes or range(len(starts)))]
    else:
        rows = [row for one in rest if (row := whole_sizes(one)) is not None]
        if len(rows) != len(rest):
            return None
    defaults = [rows[0], rows[1], tuple(range(len(rows[0]))), (1,) * len(rows[0])]
    starts, ends, axes, steps = rows + defaults[len(rows) :]
    if given.ndim != 1 or tuple(axes) not in ((0,), (-1,)):
        return None
    end = None if steps[0] < 0 and ends[0] < -given.size else ends[0]
    return given[starts[0] : end : steps[0]]


def _joined(node: ir.Node, *given: Numbers) -> Numbers:
    return np.concatenate(given, axis=attribute(node, "axis"))


def _reshaped(node: ir.Node, given: Numbers, target: Numbers) -> Numbers | None:
    sizes = whole_sizes(target)
    if sizes is None:
        return None
    if not attribute(node, "allowzero", 0):
        sizes = tuple(given.shape[place] if size == 0 else size for place, size in enumerate(sizes))
    return given.reshape(sizes)


def _named_axes(node: ir.Node, axes: Numbers | None) -> tuple[int, ...] | None:
    found = attribute(node, "axes") if axes is None else whole_sizes(axes)
    return None if found is None else tuple(found)


def _unsqueezed(node: ir.Node, given: Numbers, axes: Numbers | None = None) -> Numbers | None:
    named = _named_axes(node, axes)
    return None if named is None else np.expand_dims(given, named)


def _squeezed(node: ir.Node, given: Numbers, axes: Numbers | None = None) -> Numbers | None:
    return np.squeeze(given, _named_axes(node, axes))


def _filled(node: ir.Node, shape: Numbers) -> Numbers | None:
    sizes = whole_sizes(shape)
    tensor = attribute(node, "value")
    if sizes is None or np.prod(sizes, dtype=float) > budgets.LONGEST_SHORT_CONSTANT:
        return None
    entry = number(0) if tensor is None else _exact_number(tensor.numpy().ravel().tolist()[0])
    return None if entry is None else _array([entry] * int(np.prod(sizes)), sizes)


def _expanded(_: ir.Node, given: Numbers, target: Numbers) -> Numbers | None:
    sizes = whole_sizes(target)
    return None if sizes is None else np.broadcast_to(given, np.broadcast_shapes(given.shape, sizes)).copy()


_RULES: Mapping[str, Callable[..., Numbers | None]] = {
    "Identity": lambda _, given: given,
    "Add": _of_each(lambda a, b: a + b),
    "Sub": _of_each(lambda a, b: a - b),
    "Mul": _of_each(lambda a, b: a * b),
    "Div": _quotient,
    "Mod": _remainder,
    "Pow": _of_each(_power),
    "Neg": _of_each(lambda a: -a),
    "Abs": _of_each(sympy.Abs),
    "Floor": _of_each(sympy.floor),
    "Ceil": _of_each(sympy.ceiling),
    "Min": _fold_by(sympy.Min),
    "Max": _fold_by(sympy.Max),
    "Equal": _of_each(sympy.Eq),
    "Less": _of_each(sympy.Lt),
    "LessOrEqual": _of_each(sympy.Le),
    "Greater": _of_each(sympy.Gt),
    "GreaterOrEqual": _of_each(sympy.Ge),
    "And": _of_each(sympy.And),
    "Or": _of_each(sympy.Or),
    "Not": _of_each(sympy.Not),
    "Where": _of_each(Choice),
    "Cast": _cast,
    "ReduceProd": _reduced(lambda a, b: a * b),
    "ReduceSum": _reduced(lambda a, b: a + b),
    "ReduceMax": _reduced(sympy.Max),
    "ReduceMin": _reduced(sympy.Min),
    "Gather": _gathered,
    "Slice": _sliced,
    "Concat": _joined,
    "Reshape": _reshaped,
    "Unsqueeze": _unsqueezed,
    "Squeeze": _squeezed,
    "ConstantOfShape": _filled,
    "Expand": _expanded,
}
