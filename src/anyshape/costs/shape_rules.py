"""The sizes of a node's results where onnx-shape-inference guesses or gives up: a rule for each such operator.

A rule is right at every size at which the runtime runs the node: of two sizes that must be equal, either will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import onnx_ir as ir
import sympy

from anyshape.costs.size_numbers import Choice, SizeNumbers, whole_sizes
from anyshape.onnxfile.graph import attribute
from anyshape.sizes.expressions import Shape, Size, is_number, number, product


class KnownSizes(Protocol):
    """What a rule may ask for."""

    numbers: SizeNumbers

    def shape(self, value: ir.Value | None) -> Shape | None: ...

    def unknown(self) -> Size: ...

    def is_unknown(self, size: Size) -> bool: ...

    def require(self, size: Size) -> None:
        """Note that a node is not made for sizes at which this is below zero."""


Rule = Callable[[KnownSizes, ir.Node], Shape | None]
"""The shape of the first result; None where it is not known."""


# ---- sizes that meet


def broadcast_sizes(known: KnownSizes, one: Size, other: Size) -> Size:
    """Equal, or one of them is 1; of two that are not known to be equal the larger, then."""
    if other in (one, 1):
        return one
    if one == 1:
        return other
    if is_number(one) or is_number(other):
        return one if is_number(one) else other
    if known.is_unknown(one) or known.is_unknown(other):
        return known.unknown()
    return one if sympy.expand(one - other) == 0 else sympy.Max(one, other)


def broadcast_shapes(known: KnownSizes, shapes: Iterable[Shape | None]) -> Shape | None:
    result: Shape = ()
    for shape in shapes:
        if shape is None:
            return None
        rank = max(len(result), len(shape))
        rows = [(*([number(1)] * (rank - len(row))), *row) for row in (result, shape)]
        result = tuple(broadcast_sizes(known, a, b) for a, b in zip(*rows, strict=True))
    return result


def _given_shapes(known: KnownSizes, node: ir.Node) -> list[Shape | None]:
    return [known.shape(value) for value in node.inputs if value is not None]


def _elementwise(known: KnownSizes, node: ir.Node) -> Shape | None:
    return broadcast_shapes(known, _given_shapes(known, node))


def _multiplied(known: KnownSizes, node: ir.Node) -> Shape | None:
    left, right = _given_shapes(known, node)[:2]
    if not left or not right:
        return None
    stacked = broadcast_shapes(known, (left[:-2], right[:-2]))
    if stacked is None:
        return None
    return (*stacked, *(left[-2:-1] if len(left) > 1 else ()), *(right[-1:] if len(right) > 1 else ()))


def _expanded(known: KnownSizes, node: ir.Node) -> Shape | None:
    return broadcast_shapes(known, (known.shape(node.inputs[0]), known.numbers.row(node.inputs[1])))


def _joined(known: KnownSizes, node: ir.Node) -> Shape | None:
    shapes = [shape for shape in _given_shapes(known, node) if shape is not None]
    if len(shapes) != len(node.inputs) or not shapes or len({len(shape) for shape in shapes}) > 1:
        return None
    along = attribute(node, "axis") % len(shapes[0])
    # the sizes of the other axes are equal: the best known one is taken
    best = [
        min(sizes, key=lambda size: (known.is_unknown(size), not is_number(size)))
        for sizes in zip(*shapes, strict=True)
    ]
    return (*best[:along], sum((shape[along] for shape in shapes), number(0)), *best[along + 1 :])


# ---- sizes that numbers decide


def _reshaped(known: KnownSizes, node: ir.Node) -> Shape | None:
    shape, target = known.shape(node.inputs[0]), known.numbers.row(node.inputs[1])
    if target is None:
        return None
    sizes = list(target)
    if not attribute(node, "allowzero", 0):
        for place, size in enumerate(sizes):
            if size == 0:
                sizes[place] = shape[place] if shape is not None and place < len(shape) else known.unknown()
    if number(-1) in sizes:
        place = sizes.index(number(-1))
        rest = product(sizes[:place] + sizes[place + 1 :])
        sizes[place] = known.unknown() if shape is None or rest == 0 else exact_ratio(product(shape), rest)
    return tuple(sizes)


def exact_ratio(over: Size, under: Size) -> Size:
    """Where it is known that nothing is left over."""
    ratio = over / under
    return ratio if ratio.as_numer_denom()[1] == 1 else sympy.cancel(sympy.together(ratio))


def _sliced(known: KnownSizes, node: ir.Node) -> Shape | None:
    shape = known.shape(node.inputs[0])
    if shape is None:
        return None
    if len(node.inputs) == 1:  # before opset 10
        given = [attribute(node, name) for name in ("starts", "ends", "axes")]
        starts, ends = (tuple(map(number, row)) for row in given[:2])
        axes, steps = given[2], None
    else:
        rows = [known.numbers.row(value) for value in node.inputs[1:3]]
        starts, ends = (row or () for row in rows)
        axes, steps = (
            whole_sizes(known.numbers.of(v)) for v in (*node.inputs[3:5], *([None] * (5 - len(node.inputs))))
        )
        named = [value for value in node.inputs[3:5] if value is not None]
        if None in rows or len(named) != sum(row is not None for row in (axes, steps)):
            return _same_but(known, shape, axes)
    sizes = list(shape)
    for place, axis in enumerate(axes if axes is not None else range(len(starts))):
        step = 1 if steps is None else steps[place]
        sizes[axis] = sliced_size(sizes[axis], starts[place], ends[place], step)
    return tuple(sizes)


def _same_but(known: KnownSizes, shape: Shape, axes: Sequence[int] | None) -> Shape:
    """All axes as they were but these; all of them where nobody knows which."""
    moved = range(len(shape)) if axes is None else {axis % len(shape) for axis in axes}
    return tuple(known.unknown() if axis in moved else size for axis, size in enumerate(shape))


_FAR = 2**31 - 1
"""From here on an end means the end of the axis, whatever its size."""


def sliced_size(size: Size, start: Size, end: Size, step: int) -> Size:
    """What is left of an axis."""
    lowest, highest = (number(0), size) if step > 0 else (number(-1), size - 1)
    first = _clamped_place(size, start, number(0) if step < 0 else lowest, highest)
    last = _clamped_place(size, end, lowest, highest)
    steps = (last - first) / step if step > 0 else (first - last) / -step
    return sympy.Max(0, sympy.ceiling(steps) if abs(step) != 1 else steps)


def _clamped_place(size: Size, place: Size, lowest: Size, highest: Size) -> Size:
    if is_number(place) and place >= _FAR:
        return highest
    if is_number(place) and place <= -_FAR:
        return lowest
    if place.is_negative:
        place = size + place
    elif not place.is_nonnegative:
        place = Choice(place >= 0, place, size + place)
    return sympy.Max(lowest, sympy.Min(place, highest))


def _counted(known: KnownSizes, node: ir.Node) -> Shape | None:
    """Range."""
    rows = [known.numbers.row(value) for value in node.inputs]
    if any(row is None or len(row) != 1 for row in rows):
        return None
    ((start,), (limit,), (delta,)) = (row for row in rows if row is not None)
    return (sympy.Max(0, sympy.ceiling((limit - start) / delta)),) if is_number(delta) and delta else None


def _filled(known: KnownSizes, node: ir.Node) -> Shape | None:
    return known.numbers.row(node.inputs[0])


def _tiled(known: KnownSizes, node: ir.Node) -> Shape | None:
    shape, times = known.shape(node.inputs[0]), known.numbers.row(node.inputs[1])
    return None if shape is None or times is None else tuple(a * b for a, b in zip(shape, times, strict=True))


def _padded(known: KnownSizes, node: ir.Node) -> Shape | None:
    shape = known.shape(node.inputs[0])
    if len(node.inputs) > 1:
        pads = known.numbers.row(node.inputs[1])
    else:
        pads = tuple(map(number, attribute(node, "pads", ())))
    if shape is None or pads is None:
        return None
    axes: Sequence[int] | None = range(len(shape))
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        axes = whole_sizes(known.numbers.of(node.inputs[3]))
    if axes is None or len(pads) != 2 * len(axes):
        return None
    sizes = list(shape)
    for place, axis in enumerate(axes):
        sizes[axis] += pads[place] + pads[place + len(axes)]
    return tuple(sizes)


def _resized(known: KnownSizes, node: ir.Node) -> Shape | None:
    shape = known.shape(node.inputs[0])
    policy = attribute(node, "keep_aspect_ratio_policy", "stretch")
    if shape is None or policy not in ("stretch", b"stretch") or node.op_type == "Upsample" or len(node.inputs) < 3:
        return None
    axes = [axis % len(shape) for axis in attribute(node, "axes", range(len(shape)))]
    sizes = known.numbers.row(node.inputs[3]) if len(node.inputs) > 3 else None
    if not sizes:
        scales = known.numbers.row(node.inputs[2])
        # the runtime multiplies in float32: a scale with a long fraction is rounded, and with it the size
        if not scales or not all(scale.is_Rational for scale in scales):
            return None
        sizes = tuple(sympy.floor(shape[axis] * scale) for axis, scale in zip(axes, scales, strict=True))
    resized = dict(zip(axes, sizes, strict=True))
    return tuple(resized.get(axis, size) for axis, size in enumerate(shape))


def _pooled(known: KnownSizes, node: ir.Node) -> Shape | None:
    """Where windows begin; one that would begin behind the end, rounded up, is left out."""
    shape, kernel = known.shape(node.inputs[0]), attribute(node, "kernel_shape")
    if shape is None or kernel is None:
        return None
    rank = len(kernel)
    strides, dilations = (attribute(node, name) or [1] * rank for name in ("strides", "dilations"))
    pads, padded = attribute(node, "pads") or [0] * (2 * rank), attribute(node, "auto_pad", "NOTSET")
    sizes = []
    for axis, (size, window, stride, dilation) in enumerate(zip(shape[2:], kernel, strides, dilations, strict=True)):
        if padded in ("SAME_UPPER", "SAME_LOWER"):
            sizes.append(sympy.ceiling(size / stride))
            continue
        before, after = (0, 0) if padded == "VALID" else (pads[axis], pads[axis + rank])
        room = size + before + after - dilation * (window - 1) - 1
        known.require(room)
        count = (sympy.ceiling if attribute(node, "ceil_mode", 0) else sympy.floor)(room / stride) + 1
        behind = (count - 1) * stride >= size + before
        sizes.append(Choice(behind, count - 1, count) if attribute(node, "ceil_mode", 0) else count)
    return (*shape[:2], *sizes)


def _squeezed(known: KnownSizes, node: ir.Node) -> Shape | None:
    """Without axes, whichever are 1 go: that is known where all are numbers."""
    shape = known.shape(node.inputs[0])
    named = attribute(node, "axes") if len(node.inputs) < 2 else whole_sizes(known.numbers.of(node.inputs[1]))
    if shape is None:
        return None
    if named is None:
        if len(node.inputs) > 1 or not all(map(is_number, shape)):
            return None
        return tuple(size for size in shape if size != 1)
    gone = {axis % len(shape) for axis in named}
    return tuple(size for axis, size in enumerate(shape) if axis not in gone)


_ELEMENTWISE = (
    "Add", "Sub", "Mul", "Div", "Mod", "Pow", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Less",
    "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor", "Max", "Min", "Mean", "Sum", "Where", "PRelu",
)  # fmt: skip
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    "MatMul": _multiplied, "Expand": _expanded, "Concat": _joined, "Reshape": _reshaped, "Slice": _sliced,
    "Range": _counted, "ConstantOfShape": _filled, "Tile": _tiled, "Pad": _padded, "Resize": _resized,
    "Upsample": _resized, "Squeeze": _squeezed, **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pooled),
}  # fmt: skip
"""A rule that knows nothing leaves what was inferred elsewhere only where that cannot be a guess: nowhere here."""

DECIDED_BY: Mapping[str, Sequence[int]] = {
    "Reshape": (1,), "Expand": (1,), "Range": (0, 1, 2), "Slice": (1, 2, 3, 4), "Tile": (1,), "Pad": (1, 3),
    "ConstantOfShape": (0,), "Resize": (1, 2, 3), "Upsample": (1,), "TopK": (1,), "OneHot": (1,), "Split": (1,),
    "Squeeze": (1,), "Unsqueeze": (1,), "CenterCropPad": (1,), "AffineGrid": (1,), "If": (0,), "DFT": (1, 2),
    "STFT": (1, 3), "SplitToSequence": (1,), "SequenceAt": (1,),
}  # fmt: skip
"""The inputs whose contents decide the sizes of the results."""
DATA_DEPENDENT = frozenset(
    ("NonZero", "Unique", "NonMaxSuppression", "Compress", "StringSplit", "Loop", "SequenceErase", "SequenceInsert")
)
"""Operators whose results have sizes that the data decide."""


def total(sizes: Iterable[Size]) -> Size:
    return sympy.Add(*sizes)
