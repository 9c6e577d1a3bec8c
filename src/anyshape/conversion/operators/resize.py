"""Resizing as torch's CPU kernel computes it, at every pair of sizes.

ONNX's Resize rounds otherwise than torch: its nearest pixel is another one at every twentieth pair of sizes, a size
by a factor is at times one less, and linear weights lose digits. Here places in the input are computed as torch does,
and read by a Gather for each axis; Resize is left where both agree whatever the sizes are. Antialiased resizing with a
scale or with aligned corners is a product with weights. Beside it stands the grid by which others sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import onnx_ir as ir
import torch
from torch import fx

from anyshape.conversion.operators.onnx_words import (
    DOUBLE,
    FLOAT,
    INT64,
    as_vector,
    counted,
    flipped,
    is_size_of,
    number,
    op,
    rank,
    size_of,
    static_size,
    torchs_translation,
    vector,
    whole,
)  # fmt: skip

# ---- where channels lie in memory: ONNX has no layout, but one kernel of torch gives other values by it

_BY_LAYOUT = (
    "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "upsample_nearest2d", "upsample_nearest3d",
    "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
)  # fmt: skip
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


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
        value.dim() in _CHANNELS_LAST
        and value.stride()[1] == 1
        and value.is_contiguous(memory_format=_CHANNELS_LAST[value.dim()])
    )


# ---- antialiased: a matrix of weights for each axis, made at run time, and two products

Scale = float | ir.Value | None
Sizes = Sequence[int | ir.Value]


def _floats(value: Any, kind: ir.DataType = FLOAT) -> Any:
    return op.Cast(value, to=kind)


def _literal(value: float, kind: ir.DataType = FLOAT) -> Any:
    return op.Constant(value=ir.tensor([float(value)], dtype=kind))


def _distance_of_centres(
    before: Any, after: Any, scale: Scale, *, align_corners: bool, kind: ir.DataType = FLOAT
) -> Any:
    """How far apart the centres of two neighbours stand in the input, computed in one type as torch's kernels do."""
    if align_corners:
        gaps = op.Max(op.Sub(after, whole(1)), whole(1))
        step = op.Div(_floats(op.Sub(before, whole(1)), kind), _floats(gaps, kind))
        return op.Where(op.Greater(after, whole(1)), step, _literal(0, kind))
    if scale is None:
        return op.Div(_floats(before, kind), _floats(after, kind))
    if isinstance(scale, ir.Value):
        return op.Div(_literal(1, kind), op.Reshape(_floats(scale, kind), whole(1)))
    return _literal(1 / scale, kind)


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


# ---- nearest, linear and cubic: for each axis the places that torch reads, with their weights

# All of it was compared with torch by brute force: every pair of sizes up to 200, factors, types and layouts.


class _Axis(NamedTuple):
    """One axis that is resized: its sizes in the input and in the result, and the factor, if that was given."""

    place: int
    before: int | ir.Value
    after: int | ir.Value
    scale: Scale

    def step(self, kind: ir.DataType, *, align_corners: bool = False) -> Any:
        sizes = as_vector(self.before), as_vector(self.after)
        return _distance_of_centres(*sizes, self.scale, align_corners=align_corners, kind=kind)

    @property
    def last(self) -> Any:
        return op.Sub(as_vector(self.before), whole(1))

    @property
    def factor(self) -> float | None:
        """Where it is known whatever the sizes are."""
        if self.scale is not None:
            return None if isinstance(self.scale, ir.Value) else self.scale
        before, after = self.before, self.after
        return after / before if isinstance(before, int) and isinstance(after, int) else None


def _axes_of(x: ir.Value, output_size: Sizes | None, scales: Sequence[Scale]) -> list[_Axis]:
    """The axes in their order; those that stay as they are are left out."""
    found = []
    for index, scale in enumerate(scales):
        place = 2 + index
        before = static_size(x, place)
        after = _scaled_size(x, place, scale) if output_size is None else output_size[index]
        if scale != 1 and not (scale is None and is_size_of(after, x, place)):
            found.append(_Axis(place, size_of(x, place) if before is None else before, after, scale))
    return found


def _scaled_size(x: ir.Value, place: int, scale: Scale) -> int | ir.Value:
    """As torch: the product in double, cut off."""
    before = static_size(x, place)
    if before is not None and isinstance(scale, float | int):
        return int(float(before) * scale)
    factor = op.Cast(scale, to=DOUBLE) if isinstance(scale, ir.Value) else _literal(scale or 1.0, DOUBLE)
    return op.Cast(op.Floor(op.Mul(op.Cast(size_of(x, place), to=DOUBLE), factor)), to=INT64)


def _are_powers_of_two(axes: Sequence[_Axis]) -> bool:
    """Whether all that a kernel computes from the factors is exact, in ONNX's Resize as in torch's."""
    return all(axis.factor is not None and math.frexp(axis.factor)[0] == 0.5 for axis in axes)


def _by_onnx(x: ir.Value, axes: Sequence[_Axis], **options: str) -> Any:
    """Resize, for factors that are powers of two: the sizes are exact in its arithmetic, too."""
    factors = {axis.place: axis.factor for axis in axes}
    scales = ir.tensor([factors.get(place) or 1.0 for place in range(rank(x))], dtype=FLOAT)
    return op.Resize(x, None, op.Constant(value=scales), **options)


Taps = Sequence[tuple[ir.Value, ir.Value | None]]
"""For every place in the result one in the input, and its weight; as many as are added up."""


def _read_along(x: ir.Value, axes: Sequence[_Axis], taps_of: Callable[[_Axis], Taps]) -> Any:
    """The last axis first, as torch does; exchanged with the one before, since whole rows are copied much faster."""
    result: Any = x
    for axis in reversed(axes):
        is_last = axis.place == rank(x) - 1
        place = axis.place - 1 if is_last else axis.place
        turned = flipped(result, rank(x)) if is_last else result
        read = _sum_of_taps(turned, taps_of(axis), place, rank(x) - 1 - place)
        result = flipped(read, rank(x)) if is_last else read
    return op.Identity(x) if not axes else result


def _sum_of_taps(x: Any, taps: Taps, place: int, later: int) -> Any:
    terms = []
    for index, weight in taps:
        read = op.Gather(x, index, axis=place)
        # broadcast along the axes behind this one
        terms.append(read if weight is None else op.Mul(read, op.Unsqueeze(weight, whole(*range(1, 1 + later)))))
    return reduce(op.Add, terms)


# torch has two kernels for the nearest. The first takes float32 for every place, and leaves a factor aside where the
# result is as long as the input or twice as long. The second takes the type of what is resized, and moves by half a
# pixel and back for `nearest-exact`, with one rounding for both: at 23 of 40,000 pairs of sizes that is another pixel.


class _Nearest(NamedTuple):
    exact: bool
    """`nearest-exact`: from the middle of a pixel."""
    double: bool
    plain: bool | ir.Value
    """Which kernel it is: the first, or the second, or a flag of the run."""

    def taps(self, axis: _Axis) -> Taps:
        first, second = self._first_places(axis), self._second_places(axis)
        if isinstance(self.plain, ir.Value):
            places = op.Where(self.plain, first, second)
        else:
            places = first if self.plain else second
        return [(op.Min(op.Cast(op.Floor(places), to=INT64), axis.last), None)]

    def _first_places(self, axis: _Axis) -> Any:
        index = counted(axis.after)
        if self.exact:
            centres = op.Add(_floats(index, DOUBLE), _literal(0.5, DOUBLE))
            return _floats(op.Mul(centres, _floats(axis.step(FLOAT), DOUBLE)))
        places = op.Mul(_floats(index), axis.step(FLOAT))
        if axis.scale is None:
            return places
        before, after = as_vector(axis.before), as_vector(axis.after)
        halves = _floats(op.Div(index, whole(2)))
        doubled = op.Where(op.Equal(after, op.Mul(before, whole(2))), halves, places)
        return op.Where(op.Equal(after, before), _floats(index), doubled)

    def _second_places(self, axis: _Axis) -> Any:
        index, kind = counted(axis.after), DOUBLE if self.double else FLOAT
        if not self.exact:
            return _floats(op.Mul(_floats(index, kind), axis.step(kind)))
        half = _literal(0.5, DOUBLE)
        moved = op.Mul(op.Add(_floats(index, DOUBLE), half), _floats(axis.step(kind), DOUBLE))
        back = op.Max(_floats(op.Sub(moved, half), kind), _literal(0, kind))
        return _floats(op.Add(_floats(back, DOUBLE), half))


_FEW_CHANNELS, _SMALL_IMAGE = 3, 128
"""From more channels, and up to this height and width together, torch takes the first kernel."""


def _takes_plain_kernel(x: ir.Value, output_size: Sizes, *, from_channels_last: bool) -> bool | ir.Value:
    channels = static_size(x, 1)
    if from_channels_last and (channels is None or channels > _FEW_CHANNELS):
        return True
    if len(output_size) != 2:
        return False
    height, width = output_size
    if isinstance(height, int) and isinstance(width, int):
        return height + width <= _SMALL_IMAGE
    return op.LessOrEqual(op.Add(as_vector(height), as_vector(width)), whole(_SMALL_IMAGE))


def _nearest(
    x: ir.Value, output_size: Sizes | None, scales: Sequence[Scale], *, exact: bool, from_channels_last: bool = False
) -> Any:
    axes = _axes_of(x, output_size, scales)
    if _are_powers_of_two(axes) and not (exact and any((axis.factor or 0) < 1 for axis in axes)):
        return _by_onnx(x, axes, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    kernels = _Nearest(exact, x.dtype == DOUBLE, plain=False)
    if exact or kernels.double or any(axis.scale is not None for axis in axes):
        sizes = output_size or [_scaled_size(x, 2 + index, scale) for index, scale in enumerate(scales)]
        kernels = kernels._replace(plain=_takes_plain_kernel(x, sizes, from_channels_last=from_channels_last))
    return _read_along(x, axes, kernels.taps)


def _source(axis: _Axis, kind: ir.DataType, *, align_corners: bool) -> Any:
    """Where in the input each place of the result lies; moved by half a pixel with one rounding, as in torch."""
    step, index = axis.step(kind, align_corners=align_corners), counted(axis.after)
    if align_corners:
        return op.Mul(_floats(index, kind), step)
    half = _literal(0.5, DOUBLE)
    return _floats(op.Sub(op.Mul(_floats(step, DOUBLE), op.Add(_floats(index, DOUBLE), half)), half), kind)


def _linear_taps(axis: _Axis, *, kind: ir.DataType, align_corners: bool) -> Taps:
    source = op.Max(_source(axis, kind, align_corners=align_corners), _literal(0, kind))
    if axis.scale is not None:  # a factor counts only where it changes the size
        is_same = op.Equal(as_vector(axis.after), as_vector(axis.before))
        source = op.Where(is_same, _floats(counted(axis.after), kind), source)
    lower = op.Min(op.Cast(source, to=INT64), axis.last)
    weight = op.Min(op.Sub(source, _floats(lower, kind)), _literal(1, kind))
    upper = op.Min(op.Add(lower, whole(1)), axis.last)
    return [(lower, op.Sub(_literal(1, kind), weight)), (upper, weight)]


def _cubic_taps(axis: _Axis, *, kind: ir.DataType, align_corners: bool) -> Taps:
    source = _source(axis, kind, align_corners=align_corners)
    lower = op.Floor(source)
    rest = op.Sub(source, lower)
    first = op.Cast(lower, to=INT64)
    taps = []
    for offset, weight in zip((-1, 0, 1, 2), _cubic_weights(rest, kind), strict=True):
        index = op.Max(op.Min(op.Add(first, whole(offset)), axis.last), whole(0))
        taps.append((index, weight))
    return taps


def _cubic_weights(rest: Any, kind: ir.DataType) -> list[Any]:
    """Keys' cubic with a = -0.75, of four neighbours."""
    a = -0.75

    def literal(value: float) -> Any:
        return _literal(value, kind)

    def near(t: Any) -> Any:
        inner = op.Sub(op.Mul(literal(a + 2), t), literal(a + 3))
        return op.Add(op.Mul(op.Mul(inner, t), t), literal(1))

    def far(t: Any) -> Any:
        inner = op.Add(op.Mul(op.Sub(op.Mul(literal(a), t), literal(5 * a)), t), literal(8 * a))
        return op.Sub(op.Mul(inner, t), literal(4 * a))

    other = op.Sub(literal(1), rest)
    return [far(op.Add(rest, literal(1))), near(rest), near(other), far(op.Add(other, literal(1)))]


def _blend(
    taps: Callable[..., Taps], x: ir.Value, output_size: Sizes | None, scales: Sequence[Scale], *, align_corners: bool
) -> Any:
    if align_corners and output_size is None:  # a factor tells the size alone
        output_size = [_scaled_size(x, 2 + index, scale) for index, scale in enumerate(scales)]
    axes = _axes_of(x, output_size, [None] * len(scales) if align_corners else scales)
    if taps is _linear_taps and not align_corners and _are_powers_of_two(axes):
        return _by_onnx(x, axes, mode="linear", coordinate_transformation_mode="half_pixel")
    kind = DOUBLE if x.dtype == DOUBLE else FLOAT
    floats = x if x.dtype == kind else _floats(x, kind)
    read = _read_along(floats, axes, partial(taps, kind=kind, align_corners=align_corners))
    return read if floats is x else op.CastLike(read, x)


def _by_sizes_or_factors(operator: str, dims: int, taps: Callable[..., Taps] | None = None) -> dict[str, Any]:
    """Both forms of an operator: factors in one list, or one by one behind the sizes; what is blended has corners."""

    def translate(x: ir.Value, output_size: Sizes | None = None, *given: Any, **named: Any) -> Any:
        layout = {key: named.pop(key) for key in ("from_channels_last",) if key in named}
        if taps is not None and not (x.dtype is not None and x.dtype.is_floating_point()):
            return _blend_whole_numbers(operator, x, output_size, *given, *named.values())
        corners, *rest = given if taps is not None else (False, *given)
        listed = [
            one for part in (*rest, *named.values()) for one in (part if isinstance(part, list | tuple) else [part])
        ]
        scales = (listed + [None] * dims)[:dims]
        if taps is not None:
            return _blend(taps, x, output_size, scales, align_corners=corners)
        return _nearest(x, output_size, scales, exact="exact" in operator, **layout)

    return {f"aten::{operator}": translate, f"aten::{operator}.vec": translate}


def _blend_whole_numbers(operator: str, x: ir.Value, output_size: Sizes | None, corners: bool, *scales: Any) -> Any:
    """Pixels that are whole numbers are blended in another arithmetic: left to torch's translation."""
    if output_size is None:
        return torchs_translation(f"nn.aten_{operator}_vec")(x, None, corners, *scales)
    return torchs_translation(f"nn.aten_{operator}")(x, vector(output_size), corners)


# ---- places that are sampled, far outside among them

_NEAREST = 1
_BORDER, _REFLECTION = 1, 2
_FAR = 16.0
"""Beyond the border whatever the size, and its neighbours, too: all further out give the same."""


def _sample(x: ir.Value, grid: ir.Value, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """ONNX Runtime makes an integer of a place, which one of 1e30 does not fit into, and rounds before it reflects."""
    if padding_mode == _REFLECTION and interpolation_mode == _NEAREST and not align_corners:
        grid, padding_mode = _mirror_places(grid), _BORDER
    if padding_mode != _REFLECTION:
        grid = op.Max(op.Min(grid, number(_FAR, grid)), number(-_FAR, grid))
    sample = torchs_translation("core.aten_grid_sampler_2d")
    return sample(x, grid, interpolation_mode, padding_mode, align_corners)


def _mirror_places(grid: ir.Value) -> ir.Value:
    """Places between -1 and 1, where the outer edges of the outermost pixels are mirrors: 4 there and back."""
    way = op.Mod(op.Abs(op.Add(grid, number(1.0, grid))), number(4.0, grid), fmod=1)
    return op.Sub(number(1.0, grid), op.Abs(op.Sub(way, number(2.0, grid))))


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
    "aten::grid_sampler": _sample,
    "aten::grid_sampler_2d": _sample,
    "aten::grid_sampler_3d": _sample,
    "aten::affine_grid_generator": _affine_grid,
    **_by_sizes_or_factors("upsample_nearest1d", 1),
    **_by_sizes_or_factors("upsample_nearest2d", 2),
    **_by_sizes_or_factors("upsample_nearest3d", 3),
    **_by_sizes_or_factors("_upsample_nearest_exact1d", 1),
    **_by_sizes_or_factors("_upsample_nearest_exact2d", 2),
    **_by_sizes_or_factors("_upsample_nearest_exact3d", 3),
    **_by_sizes_or_factors("upsample_linear1d", 1, _linear_taps),
    **_by_sizes_or_factors("upsample_bilinear2d", 2, _linear_taps),
    **_by_sizes_or_factors("upsample_trilinear3d", 3, _linear_taps),
    **_by_sizes_or_factors("upsample_bicubic2d", 2, _cubic_taps),
}
