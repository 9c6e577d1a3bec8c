"""Numbers of a freed file that may follow from a freed size: `x / 4` where the batch was 4, a ramp from 0 to 1.

Shapes do not show them, since a number has none. A suspect equals a simple formula of the sizes in the file, and
nothing around it explains it: no fixed size that it is a scale of, no function that has this number by definition.
Whether it matters, and what it is, others decide.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from anyshape.freeing.constant_patterns import START, is_uniform
from anyshape.freeing.growth import ORIGIN
from anyshape.freeing.inference import Evaluator
from anyshape.freeing.records import SETTLED
from anyshape.freeing.walk import ELEMENTWISE, Walk, axes_of
from anyshape.onnxfile.graph import every_node, name_of
from anyshape.sizes import budgets
from anyshape.sizes.expressions import is_number, number, product, spelled
from anyshape.sizes.formulas import SizeFormula
from anyshape.sizes.notation import Sizes

Use = tuple[int, int]
"""A node, counted through all graphs of a model, and which of its inputs."""


@dataclass(frozen=True)
class Suspect:
    """A number in the file, where it is used."""

    node: str
    operator: str
    constant: str
    """How the constant or the attribute is called."""
    names: frozenset[str]
    """By which the user may call it: those of the node, its results and the constant."""
    use: Use
    """In the freed model; an attribute has the place -1."""
    array: Any
    readings: tuple[SizeFormula, ...]
    whole: str = "{}"
    """What the user says with a reading: the number itself, or a ramp that begins with it."""
    axis: int | None = None
    """Of a table, the one along which it is straight, in steps that a reading tells."""

    @property
    def can_be_told(self) -> bool:
        """Whether a formula can be written in its place: an attribute of ONNX is a number."""
        return self.use[1] >= 0 and self.axis is None

    @property
    def text(self) -> str:
        """As a reader knows it: `0.25`, `[0, 16]`, `16 numbers from 0 to 1`."""
        flat = self.array.ravel()
        if is_same(flat):
            return f"{flat[0]:g}"
        if flat.size <= budgets.LONGEST_NUMBERS_TOLD and self.array.dtype.kind != "f":
            return f"[{', '.join(map(str, flat))}]"
        return f"{flat.size} numbers from {flat[0]:g} to {flat[-1]:g}"


# ---- formulas that a number may be

_OF_ONE = (
    "{n}", "1/{n}", "sqrt({n})", "1/sqrt({n})", "{n} - 1", "1/({n} - 1)", "{n} + 1", "1/({n} + 1)", "{n}**2",
    "1/{n}**2", "log({n})", "1/log({n})", "{n}//2", "log({n} + 1)", "{n}/({n} - 1)", "({n} - 1)/{n}",
)  # fmt: skip
_OF_ONE_BEYOND_TWO = ("{n}**3", "1/{n}**3", "{n}**1.5", "1/{n}**1.5", "{n}**(1/3)", "1/{n}**(1/3)")
"""Powers of 2 are in most files, whatever the sizes."""
_OF_TWO = (
    "{a}*{b}", "1/({a}*{b})", "{a}/{b}", "{b}/{a}", "sqrt({a}*{b})", "1/sqrt({a}*{b})", "{a} + {b}", "1/({a} + {b})",
    "log({a}*{b})", "sqrt({a}/{b})", "sqrt({b}/{a})", "{a} - {b}", "{b} - {a}",
)  # fmt: skip
_OF_THREE = ("{a}*{b}*{c}", "1/({a}*{b}*{c})", "sqrt({a}*{b}*{c})", "1/sqrt({a}*{b}*{c})")
_CLOSE = {2: 2e-3, 4: 1e-6, 8: 1e-6}
"""How close a float of so many bytes is to what it was rounded from; a double may have been a float32."""


class Readings:
    """All formulas of the sizes in the file; a size of 1 leaves no trace in a number."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = {dim: size for dim, size in sizes.items() if size > 1}
        # one less than 2 is 1, and a factor of 1 is everywhere, too
        rows = [(form, dim) for form in _OF_ONE for dim, size in self.sizes.items() if size > 2 or " - 1" not in form]
        rows += [(form, dim) for form in _OF_ONE_BEYOND_TWO for dim, size in self.sizes.items() if size > 2]
        texts = [form.format(n=dim) for form, dim in rows]
        texts += [form.format(a=a, b=b) for form in _OF_TWO for a, b in itertools.combinations(self.sizes, 2)]
        threes = itertools.combinations(self.sizes, 3)
        texts += [form.format(a=a, b=b, c=c) for a, b, c in threes for form in _OF_THREE]
        formulas = [SizeFormula(text) for text in texts]
        self._known = [(formula, float(formula.values(self.sizes))) for formula in formulas]

    def of(self, value: float, itemsize: int, texts: Container[str] | None = None) -> Iterator[SizeFormula]:
        """What this number may be, the simplest first; 0 and 1 are everywhere and tell nothing."""
        if not math.isfinite(value) or abs(value) in (0, 1):
            return
        close = _CLOSE.get(itemsize, 0)
        for formula, known in self._known:
            is_allowed = "//" not in formula.text if itemsize else formula.is_whole
            is_allowed = is_allowed and (texts is None or formula.text in texts)
            if is_allowed and math.isclose(abs(value), abs(known), rel_tol=close):
                yield formula if (value < 0) == (known < 0) else SizeFormula(f"-({formula.text})")

    def of_array(self, array: Any) -> tuple[SizeFormula, ...]:
        """Of a number, or of a ramp with as many steps as a dim has."""
        if array.size == 0 or array.dtype.kind not in "iuf":
            return ()
        if is_same(array):
            return tuple(self.of(float(array.flat[0]), array.dtype.itemsize if array.dtype.kind == "f" else 0))
        return tuple(self._of_ramp(array))

    def of_entries(self, array: Any, texts: Sequence[Container[str]]) -> tuple[SizeFormula, ...]:
        """Of positions, each of which may be what its axis allows."""
        entries = [str(int(entry)) for entry in array.ravel()]
        return tuple(
            SizeFormula(", ".join([*entries[:place], formula.text, *entries[place + 1 :]]))
            for place, (entry, allowed) in enumerate(zip(array.ravel(), texts, strict=False))
            for formula in itertools.islice(self.of(float(entry), 0, allowed), 1)
        )

    def _of_ramp(self, array: Any) -> Iterator[SizeFormula]:
        """Of numbers that change along one axis alone, which is as long as a dim."""
        for axis, length in enumerate(array.shape):
            for dim, size in self.sizes.items():
                if length > 2 and abs(length - size) <= 1:
                    line = array[tuple(slice(None) if one == axis else 0 for one in range(array.ndim))]
                    found = list(_ramps_over(line.astype(np.float64), dim, size, array.dtype))
                    # weights are large, and hardly ever come so far
                    if found and ramp_axis(array) == axis:
                        yield from found

    def along_tables(self, array: Any) -> Iterator[tuple[int, tuple[SizeFormula, ...]]]:
        """Axes along which a table is straight, in steps that are parts of the size; no learned one is."""
        is_table = array.ndim > 1 and array.dtype.kind == "f" and ramp_axis(array) is None
        for axis, dim in itertools.product(range(array.ndim if is_table else 0), self.sizes):
            size = self.sizes[dim]
            is_as_long = array.shape[axis] > 2 and abs(array.shape[axis] - size) <= 1
            line = _steepest_line(array, axis) if is_as_long else None
            ramps = () if line is None else _ramps_over(line, dim, size, array.dtype)
            if found := tuple(one for one in ramps if "/" in one.text):
                yield axis, found


def _steepest_line(array: Any, axis: int) -> Any | None:
    """The line along an axis that rises or falls the most, from 0 on; None where some line is not straight."""
    table = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1).astype(np.float64)
    steps, close = np.diff(table, axis=0), 1e-5 * np.abs(table).max(initial=0.0)
    if not np.abs(steps - steps[:1]).max(initial=0.0) <= close:
        return None
    column = int(np.abs(steps[0]).argmax())
    return (table - table[:1])[:, column] if abs(steps[0, column]) > close else None


def with_steps_of(array: Any, axis: int, line: Any) -> Any:
    """A table that is straight along an axis, where its steepest line goes as this one does."""
    first, second = (np.take(array, [place], axis).astype(np.float64) for place in (0, 1))
    steps = second - first
    steepest = steps.flat[np.abs(steps).argmax()]
    shape = [-1 if one == axis else 1 for one in range(array.ndim)]
    return (first + steps / steepest * np.reshape(line, shape)).astype(array.dtype)


_CURVES: tuple[tuple[Callable[[Any], Any], str], ...] = (
    (np.asarray, "{}"),
    (lambda line: line / np.pi, "pi*({})"),
    (np.sqrt, "({})**2"),
    (np.square, "sqrt({})"),
    (np.log, "exp({})"),
    (lambda line: np.arcsin(line) / np.pi, "sin(pi*({}))"),
    (lambda line: np.arccos(line) / np.pi, "cos(pi*({}))"),
    (lambda line: np.arccos(1 - 2 * line) / np.pi, "(1 - cos(pi*({})))/2"),
)
"""What makes a straight line of a curve, and the curve as a formula of the line."""
_WHOLE = 1e-4
_RUNS = (1, *range(2, 18, 2))
"""Twice how far a ramp goes: a half, or a whole number as large as -4 to 4."""


def _ramps_over(line: Any, dim: str, size: int, dtype: np.dtype[Any]) -> Iterator[SizeFormula]:
    """`first + step*range(n)`, where the step is a part of the size."""
    places = f"range({_sum(dim, len(line) - size)})"
    for straightened, curve in _CURVES:
        with np.errstate(all="ignore"):
            straight = straightened(line)
            begin = max(1, len(line) // 8)  # a wave comes back soon
            step, first = float(straight[begin] - straight[0]) / begin, float(straight[0])
        texts = list(_straight_texts(first, step, places, dim, size)) if math.isfinite(step) else []
        texts += _texts_from_the_end(first, step, len(line), dim, size) if curve == "{}" else []
        for text in texts:
            formula = SizeFormula(curve.format(text))
            if np.allclose(formula.values({dim: size}), line, rtol=_CLOSE.get(dtype.itemsize, 0), atol=1e-6):
                yield formula


def _texts_from_the_end(first: float, step: float, length: int, dim: str, size: int) -> list[str]:
    """A ramp that ends at zero, as distances from the last place do, or that has it in the middle."""
    places, last = f"range({_sum(dim, length - size)})", first + step * (length - 1)
    close = _WHOLE * abs(step)
    if step and abs(last) < close:
        text = _sum(f"{places} - {dim}", size + 1 - length)
    elif step and abs(first + last) < close:
        text = f"{places} - ({_sum(dim, length - size - 1)})/2"
    else:
        return []
    return [text if step == 1 else f"{step:g}*({text})"]


def _sum(dim: str, more: int) -> str:
    return dim if not more else f"{dim} {'+' if more > 0 else '-'} {abs(more)}"


def _straight_texts(first: float, step: float, places: str, dim: str, size: int) -> Iterator[str]:
    """Whole numbers that are as many as the dim, or steps that are halves of a whole when counted through it."""
    if step == round(step) and first == round(first):
        yield (f"{first:g} + " if first else "") + (places if step == 1 else f"{step:g}*{places}")
        return
    for more in (0, -1, 1):
        run = 2 * step * (size + more)
        if size + more < 2 or abs(run - round(run)) > _WHOLE or abs(round(run)) not in _RUNS:
            continue
        for offset in (0.0, 0.5, -0.5, 1.0):  # places count from 0, from the middle of each, or from 1
            start = 2 * (first - offset * step)
            if abs(start - round(start)) < _WHOLE:
                counted = places if not offset else f"({places} {'+' if offset > 0 else '-'} {abs(offset):g})"
                factor, base = round(run) / 2, round(start) / 2
                times = "" if abs(factor) == 1 else f"{abs(factor):g}*"
                sign = ("-" if factor < 0 else "") if not base else f"{base:g} {'-' if factor < 0 else '+'} "
                # a ramp of one step has nowhere to go, and begins at its start
                below = dim if not more else f"({dim} + 1)" if more > 0 else f"max({dim} - 1, 1)"
                yield f"{sign}{times}{counted}/{below}"
                break


def ramp_axis(array: Any) -> int | None:
    """The one axis along which numbers change."""
    axes = [axis for axis in range(array.ndim) if array.shape[axis] > 1 and not is_uniform(array, axis)]
    return axes[0] if len(axes) == 1 else None


# ---- where numbers stand

_NO_NUMBERS: Mapping[str, tuple[int, ...]] = {
    "BatchNormalization": (1, 2, 3, 4), "LayerNormalization": (1, 2), "InstanceNormalization": (1, 2),
    "GroupNormalization": (1, 2), "RMSNormalization": (1,), "PRelu": (1,), "Resize": (1, 2, 3), "Upsample": (1,),
    "Dropout": (1, 2), "QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2), "LSTM": (1, 2, 3, 7), "GRU": (1, 2, 3),
    "RNN": (1, 2, 3),
}  # fmt: skip
"""Learned or measured numbers, which happen to be alike in an untrained file, and scales of a resize."""
_COUNTS: Mapping[str, tuple[int, ...]] = {
    "TopK": (1,), "OneHot": (1,), "Range": (0, 1, 2), "Trilu": (1,), "Pad": (1,), "Tile": (1,),
}  # fmt: skip
"""Whole numbers that count something; in other places they are targets and axes, which the rules know."""
_ATTRIBUTES = {"alpha", "beta", "gamma", "lambd", "bias", "epsilon", "min", "max"}


def numbers_in(walk: Walk, readings: Readings) -> Iterator[tuple[Suspect, ir.Node, int]]:
    """Every number that has a reading and no other explanation; what the walk itself wrote is none."""
    for node in every_node(walk.model.graph):
        user, made = _user_of(walk, node), walk.constant(node.outputs[0])
        if made is not None and made.size and _is_looked_at_where_used(node, made, readings):
            continue
        for place, value in enumerate(node.inputs):
            if user is None or place in user.meta.get(SETTLED, ()) or (made is not None and place == 0):
                continue
            yield from _number_at(walk, readings, node, place, value, user)
        yield from _attributes_of(readings, node)


def _is_looked_at_where_used(node: ir.Node, made: Any, readings: Readings) -> bool:
    """What is computed from numbers alone, unless it is a power of which only the exponent may tell."""
    return bool(readings.of_array(made)) or not (is_same(made) and node.op_type == "Pow")


def numbers_left(model: ir.Model, found: Iterable[tuple[Suspect, ir.Node, int]]) -> tuple[Suspect, ...]:
    """Those whose node is still part of the model, with its place there."""
    order = {node: index for index, node in enumerate(every_node(model.graph))}
    return tuple(replace(number, use=(order[node], place)) for number, node, place in found if node in order)


def _user_of(walk: Walk, node: ir.Node) -> ir.Node | None:
    """The node of the file for which one of ours was made; a node of the file is its own."""
    for _ in range(budgets.FARTHEST_USER):
        if ORIGIN in node.meta:
            return node.meta[ORIGIN]  # type: ignore[no-any-return]
        if not walk.builder.made(node):
            return node
        users = [user for user, _ in node.outputs[0].uses()]
        if not users:
            return None
        node = users[0]
    return None


def _number_at(
    walk: Walk, readings: Readings, node: ir.Node, place: int, value: ir.Value | None, user: ir.Node
) -> Iterator[tuple[Suspect, ir.Node, int]]:
    array = None if value is None or value.is_graph_input() else walk.constant(value)
    if value is None or array is None or not array.size or not _may_count(node, place, array):
        return
    origin = _origin_of(walk, node, value)
    if origin is None:
        return
    texts = _texts_along(walk, node, place)
    found = readings.of_array(array) if texts is None else readings.of_entries(array, texts)
    names = frozenset((name_of(user), str(origin.name), *(str(output.name) for output in user.outputs)))
    suspect = Suspect(name_of(user), user.op_type, str(origin.name), names, (0, place), array, found, _ramp_from(node))
    if found and not _is_explained(walk, node, place, array):
        yield suspect, node, place
    elif not found and texts is None:
        for axis, some in readings.along_tables(array):
            yield replace(suspect, readings=some, axis=axis), node, place


def _origin_of(walk: Walk, node: ir.Node, value: ir.Value) -> ir.Value | None:
    """The constant of the file that a value of ours stands for; None where it stands for none."""
    if not walk.builder.made(value):
        return value
    if START not in node.meta and value not in walk.origins and node.outputs[0] not in walk.origins:
        return None
    for _ in range(budgets.FARTHEST_DIVISOR):
        for one in (value, node.outputs[0]):
            if one in walk.origins:
                return walk.origins[one][0]
        users = [user for user, _ in node.outputs[0].uses() if walk.builder.made(user)]
        if not users:
            return None
        node = users[0]
    return None


def _ramp_from(node: ir.Node) -> str:
    """What the user would call a ramp whose first entry is a suspect."""
    size, step = node.meta.get(START, (None, 1))
    return "{}" if size is None else f"{{}} + {'' if step == 1 else f'{step}*'}range({spelled(size)})"


def _may_count(node: ir.Node, place: int, array: Any) -> bool:
    if array.dtype.kind == "f":
        return place not in _NO_NUMBERS.get(node.op_type, ())
    return node.op_type in ELEMENTWISE or place in _COUNTS.get(node.op_type, ())


def _texts_along(walk: Walk, node: ir.Node, place: int) -> list[set[str]] | None:
    """What each number along an axis may be, which follows that axis alone; None where any dim may be meant."""
    if START in node.meta:
        return [{form.format(n=symbol.name) for form in _OF_ONE for symbol in node.meta[START][0].free_symbols}]
    if node.op_type not in ("Pad", "Tile") or place != 1:
        return None
    forms = ("{n}", "{n} - 1", "{n} + 1")  # causal layers pad by half of many a size
    shape = walk.shape(node.inputs[0]) or ()
    return [{form.format(n=symbol.name) for form in forms for symbol in size.free_symbols} for size in shape] * 2


def _attributes_of(readings: Readings, node: ir.Node) -> Iterator[tuple[Suspect, ir.Node, int]]:
    names = frozenset((name_of(node), *(str(output.name) for output in node.outputs)))
    for name, one in node.attributes.items():
        is_float = one.type == ir.AttributeType.FLOAT and not one.is_ref() and node.op_type != "HardSigmoid"
        array = np.array(one.as_float() if is_float and name in _ATTRIBUTES else 0, np.float32)
        if found := readings.of_array(array):
            yield Suspect(name_of(node), node.op_type, name, names, (0, -1), array, found), node, -1


# ---- what explains a number

_PASSED = {
    "Cast", "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Identity", "Expand", "Where", "Add", "Mul", "Div", "Sub"
}  # fmt: skip


def _is_explained(walk: Walk, node: ir.Node, place: int, array: Any) -> bool:
    value = abs(float(array.flat[0]))
    if _is_part_of_function(node, place, value):
        return True
    near = _nodes_around(node, _PASSED, budgets.FARTHEST_DIVISOR) if is_same(array) else set()
    scales = {size**power for one in near for size in _scaled_by(walk, one) for power in (0.5, -0.5, 0.25, -0.25)}
    counts = {part for one in near for n in _terms_of(walk, one, array) for part in (n, 1 / n, n - 1, n / (n - 1))}
    close = _CLOSE.get(array.dtype.itemsize, 0) if array.dtype.kind == "f" else 0
    return any(math.isclose(value, known, rel_tol=close) for known in scales | counts)


def is_same(array: Any) -> bool:
    """Whether all entries are one number; those of weights differ from the start."""
    few = array.flat[: budgets.LONGEST_NUMBERS_TOLD]
    return bool((few == few[0]).all() and (array == few[0]).all())


def _scaled_by(walk: Walk, node: ir.Node) -> Iterator[int]:
    """The fixed size by whose root results are scaled: features of an attention, or of an embedding."""
    constants = [walk.constant(value) is not None for value in node.inputs[:2]]
    if node.op_type in ("MatMul", "Einsum") and not any(constants):
        yield from (int(size) for size in (walk.shape(node.inputs[0]) or ())[-1:] if is_number(size))
    if node.op_type == "Gather" and node.inputs[0] is not None and node.inputs[0].const_value is not None:
        yield from (size for size in node.inputs[0].const_value.shape[-1:] if isinstance(size, int))


def _terms_of(walk: Walk, node: ir.Node, array: Any) -> Iterator[int]:
    """How many terms a sum has, where that is fixed; a kernel that blurs has its own."""
    sizes = [number(n) for n in array.shape[2:]] if node.op_type.startswith("Conv") else []
    if node.op_type.startswith("Reduce") and (shape := walk.shape(node.inputs[0])):
        sizes = [shape[axis] for axis in axes_of(walk, node, len(shape)) or range(len(shape))]
    if sizes and all(is_number(size) for size in sizes) and product(sizes) > 1:
        yield int(product(sizes))


def _is_part_of_function(node: ir.Node, place: int, value: float) -> bool:
    """Squares and cubes; gelu's 1/2 and root of 2."""
    users = [user.op_type for output in node.outputs for user, _ in output.uses()]
    if node.op_type == "Pow" and place == 1:
        return value in (2, 3)
    if "Erf" in users and abs(value**2 - 1.25) < 1:  # the root of 2, or of 1/2
        return True
    return value in (0.5, 2) and any(_is_one_more(one) for one in _nodes_around(node, {"Mul", "Div"}, 3))


def _is_one_more(node: ir.Node) -> bool:
    """`1 + erf(x)` and `1 + tanh(x)`."""
    makers = [value.producer() for value in node.inputs if value is not None]
    return node.op_type == "Add" and any(maker is not None and maker.op_type in ("Erf", "Tanh") for maker in makers)


def _nodes_around(node: ir.Node, through: Container[str], steps: int) -> set[ir.Node]:
    """The nodes before and after a node, as far as these operators go, and those at their ends."""
    seen, edge = {node}, {node}
    for _ in range(steps):
        passed = [one for one in edge if one is node or one.op_type in through]
        made = {value.producer() for one in passed for value in one.inputs if value is not None}
        used = {user for one in passed for value in one.outputs for user, _ in value.uses()}
        edge = {one for one in made | used if one is not None} - seen
        seen |= edge
    return seen


# ---- operators that a size may have chosen


def chosen_by_size(model: onnx.ModelProto, sizes: Sizes, *operators: str) -> Iterator[tuple[str, str]]:
    """Dims, and what one of these operators does at their sizes that another one would do as well."""
    if model.ByteSize() > budgets.MOST_BYTES_TO_INFER:
        return
    with contextlib.suppress(Exception):  # whatever inference refuses
        model = onnx.shape_inference.infer_shapes(model)
    given = ir.from_proto(model)
    known = Evaluator(given)
    for node in every_node(given.graph, *operators):
        data = node.inputs[0]
        lengths = () if data is None or data.shape is None else tuple(data.shape)
        pads = known.value(node.inputs[1]) if node.op_type == "Pad" and len(node.inputs) > 1 else None
        for axis, dim in itertools.product(range(len(lengths)), sizes):
            if lengths[axis] != (size := sizes[dim]) or size < 2:
                continue
            if axis > 1 and (count := _even_parts(node, axis - 2, size)):
                yield (
                    dim,
                    f"{node.op_type} `{name_of(node)}` makes {count} of `{dim}` = {size}, as an adaptive one would",
                )
            if pads is not None and _fills_up(pads[axis], pads[axis + len(lengths)], size):
                filled = size + int(pads[axis + len(lengths)])
                yield dim, f"Pad `{name_of(node)}` fills `{dim}` = {size} up to {filled}, perhaps to a multiple"


def _even_parts(node: ir.Node, axis: int, size: int) -> int:
    """How many parts of one length a pooling makes; 0 where they differ or meet, or are pairs, which are common."""
    kernels, strides = (node.attributes.get_ints(name) or () for name in ("kernel_shape", "strides"))
    is_even = bool(kernels) and kernels == strides and not any(node.attributes.get_ints("pads") or ())
    return size // kernels[axis] if is_even and kernels[axis] > 2 and size % kernels[axis] == 0 else 0


def _fills_up(before: int, after: int, size: int) -> bool:
    """Whether the end alone is padded, by less than a power of two that divides the whole."""
    divisor = (size + after) & -(size + after)
    return not before and 0 < after < divisor and divisor >= 4
