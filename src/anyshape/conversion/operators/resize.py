"""Resizing that torch translates wrongly, or by a decomposition that looks at the traced size.

Antialiased resizing with a scale or with aligned corners is written as torch's CPU kernel computes it. Linear resizing
of one axis is ONNX's Resize. Beside it stands the grid by which others sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch
from torch import fx

from anyshape.conversion.operators.onnx_words import FLOAT, as_vector, counted, number, op, size_of, vector, whole

# ---- where channels lie in memory: ONNX has no layout, but one kernel of torch gives other values by it

_BY_LAYOUT = ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")


def mark_layouts(module: fx.GraphModule) -> None:
    """Give `from_channels_last=True` to the operators whose values depend on it."""
    for part in module.modules():
        for node in part.graph.nodes if isinstance(part, fx.GraphModule) else ():
            if _depends_on_layout(node) and _is_channels_last(node.args[0]):
                node.kwargs = {**node.kwargs, "from_channels_last": True}


def _depends_on_layout(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and schema.name.split("::")[-1] in _BY_LAYOUT


def _is_channels_last(argument: object) -> bool:
    value = argument.meta.get("val") if isinstance(argument, fx.Node) else None
    return isinstance(value, torch.Tensor) and (
        value.dim() == 4 and value.stride()[1] == 1 and value.is_contiguous(memory_format=torch.channels_last)
    )


# ---- antialiased: a matrix of weights for each axis, made at run time, and two products

Scale = float | ir.Value | None
Sizes = Sequence[int | ir.Value]


def _floats(value: Any) -> Any:
    return op.Cast(value, to=FLOAT)


def _literal(value: float) -> Any:
    return op.Constant(value=ir.tensor([float(value)], dtype=FLOAT))


def _distance_of_centres(before: Any, after: Any, scale: Scale, *, align_corners: bool) -> Any:
    """How far apart the centres of two neighbours stand in the input."""
    if align_corners:
        gaps = op.Max(op.Sub(after, whole(1)), whole(1))
        step = op.Div(_floats(op.Sub(before, whole(1))), _floats(gaps))
        return op.Where(op.Greater(after, whole(1)), step, _literal(0))
    if scale is None:
        return op.Div(_floats(before), _floats(after))
    if isinstance(scale, ir.Value):
        return op.Div(_literal(1), op.Reshape(_floats(scale), whole(1)))
    return _literal(1 / scale)


def _tent(distance: Any) -> Any:
    return op.Max(op.Sub(_literal(1), op.Abs(distance)), _literal(0))


def _cubic(distance: Any) -> Any:
    """Keys' cubic with a = -0.5, as in Pillow."""
    x = op.Abs(distance)
    near = op.Add(op.Mul(op.Mul(op.Sub(op.Mul(_literal(1.5), x), _literal(2.5)), x), x), _literal(1))
    inner = op.Sub(op.Mul(op.Add(op.Mul(op.Sub(x, _literal(5)), x), _literal(8)), x), _literal(4))
    far = op.Mul(_literal(-0.5), inner)
    return op.Where(op.Less(x, _literal(1)), near, op.Where(op.Less(x, _literal(2)), far, _literal(0)))


def _weights(
    before: Any, after: Any, scale: Scale, curve: Callable[[Any], Any], reach: float, *, align_corners: bool
) -> Any:
    """A matrix (after, before): how much each input adds to each output; every row adds up to 1."""
    step = _distance_of_centres(before, after, scale, align_corners=align_corners)
    widened = op.Max(step, _literal(1))
    support = op.Mul(widened, _literal(reach))
    half = _literal(0.5)
    centre = op.Unsqueeze(op.Mul(step, op.Add(_floats(counted(after)), half)), whole(1))
    position = op.Unsqueeze(_floats(counted(before)), whole(0))
    first = op.Max(_towards_zero(op.Add(op.Sub(centre, support), half)), _literal(0))
    last = op.Min(_towards_zero(op.Add(op.Add(centre, support), half)), _floats(before))
    inside = op.And(op.GreaterOrEqual(position, first), op.Less(position, last))
    values = curve(op.Div(op.Add(op.Sub(position, centre), half), widened))
    kept = op.Where(inside, values, _literal(0))
    return op.Div(kept, op.ReduceSum(kept, whole(1), keepdims=1))


def _towards_zero(value: Any) -> Any:
    return op.Where(op.Less(value, _literal(0)), op.Ceil(value), op.Floor(value))


def _antialiased_by(curve: Callable[[Any], Any], reach: float, mode: str, **extra: float) -> Callable[..., Any]:
    def resize(
        x: ir.Value, output_size: Sizes, align_corners: bool, *scales: Scale, from_channels_last: bool = False
    ) -> Any:
        if not align_corners and all(scale is None for scale in scales):
            sizes = op.Concat(op.Shape(x, start=0, end=2), vector(output_size), axis=0)
            options = {"mode": mode, "antialias": 1, "exclude_outside": 1, **extra}
            resized = op.Resize(x, None, None, sizes, coordinate_transformation_mode="half_pixel", **options)
        else:
            # the scales may be left out
            both = zip((size_of(x, 2), size_of(x, 3)), map(as_vector, output_size), (*scales, None, None), strict=False)
            high, wide = (_weights(*axis, curve, reach, align_corners=align_corners) for axis in both)
            across = op.MatMul(x, op.CastLike(op.Transpose(wide, perm=[1, 0]), x))
            resized = op.MatMul(op.CastLike(high, x), across)
        return _as_in_eager(resized, x, output_size, from_channels_last=from_channels_last)

    return resize


def _as_in_eager(resized: Any, x: ir.Value, output_size: Sizes, *, from_channels_last: bool) -> Any:
    """Torch's kernel repeats the first row all the way down where the result is one value wide (docs/upstream.md).

    It does so where the height changes, too, and where channels do not lie last in memory.
    """
    height, width = output_size
    if from_channels_last or (isinstance(width, int) and width != 1):
        return resized
    rows = counted(op.Shape(resized, start=2, end=3))
    is_right = op.Or(op.Greater(as_vector(width), whole(1)), op.Equal(as_vector(height), size_of(x, 2)))
    return op.Gather(resized, op.Mul(rows, op.Cast(is_right, to=ir.DataType.INT64)), axis=2)


# ---- linear, of one axis


def _linear_in_one_axis(
    x: ir.Value, output_size: Sizes | None, align_corners: bool, scale_factors: Sequence[float | ir.Value] | None = None
) -> Any:
    corners = "align_corners" if align_corners else "half_pixel"
    mode = {"mode": "linear", "coordinate_transformation_mode": corners}
    literals = [scale for scale in scale_factors or () if not isinstance(scale, ir.Value)]
    if scale_factors is not None and len(literals) == len(scale_factors):
        scales = op.Constant(value=ir.tensor([1.0, 1.0, *literals], dtype=FLOAT))
        return op.Resize(x, None, scales, **mode)
    assert output_size is not None
    return op.Resize(x, None, None, op.Concat(op.Shape(x, start=0, end=2), vector(output_size), axis=0), **mode)


# ---- the grid of `F.affine_grid`, by which others sample


def _centres(size: Any, like: ir.Value, *, align_corners: bool) -> Any:
    """Evenly spread from -1 to 1: the outermost at the corners, or half a step inside; one alone is in the middle."""
    many = as_vector(size)
    steps = op.Sub(op.Add(op.Mul(counted(many), whole(2)), whole(1)), many)
    span = op.Max(op.Sub(many, whole(1)), whole(1)) if align_corners else many
    return op.Div(op.CastLike(steps, like), op.CastLike(span, like))


def _affine_grid(theta: ir.Value, size: Sequence[Any], align_corners: bool) -> Any:
    """The transformation of every place: x, y (and z) are counted from the last axis."""
    spatial = list(size)[2:]
    shape = vector(spatial)
    places = []
    for axis in reversed(range(len(spatial))):
        line = _centres(spatial[axis], theta, align_corners=align_corners)
        later = len(spatial) - 1 - axis
        column = op.Unsqueeze(line, whole(*range(1, 1 + later))) if later else line
        places.append(op.Reshape(op.Expand(column, shape), whole(-1, 1)))
    ones = op.Expand(number(1, theta), op.Shape(places[0]))
    base = op.Unsqueeze(op.Concat(*places, ones, axis=1), whole(0))
    moved = op.MatMul(base, op.Transpose(theta, perm=[0, 2, 1]))
    return op.Reshape(moved, op.Concat(size_of(theta, 0), shape, whole(len(spatial)), axis=0))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::_upsample_bilinear2d_aa": _antialiased_by(_tent, 1.0, "linear"),
    "aten::_upsample_bicubic2d_aa": _antialiased_by(_cubic, 2.0, "cubic", cubic_coeff_a=-0.5),
    "aten::upsample_linear1d.vec": _linear_in_one_axis,
    "aten::affine_grid_generator": _affine_grid,
}
