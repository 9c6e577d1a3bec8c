"""Running a module with every rounded result moved by a few roundings, at random: what moves is noise.

Whether an operator rounds is seen by running it in float64 as well: what is exact stays put, as copies, halves, counts
and choices are, and zeros that no rounding made. What sums up inside moves by its operands, since a result that nearly
cancels is rounded by far more than its own size. Kernels that approximate move by their own measured error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyshape.sizes import budgets
from anyshape.torchkit.operator_mode import OperatorMode
from anyshape.torchkit.precision import BELOW_FLOAT64, PICKS, each_value
from anyshape.torchkit.private_names import lookup, pytree
from anyshape.torchkit.schemas import gives_alias, schema_of, writes

_aten = torch.ops.aten


class _Jitter(OperatorMode):
    def __init__(self, seed: int, strength: float) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)
        self._seed, self._strength = seed, strength

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        if schema_of(func) is None:  # `torch.cond` and its like
            return each_value(self._rounded_anew, func(*args, **kwargs))
        if func in _OPEN_ORDERS and not kwargs.get("stable"):
            return self._in_another_order(func, args, kwargs)
        if writes(func):
            return self._run_in_place(func, args, kwargs)
        generator = _generator_of(args, kwargs)
        state = generator.get_state() if _may_draw(func) else None
        result = func(*args, **kwargs)
        if gives_alias(func) or _is_never_rounded(func) or not any(map(_is_floating, _tensors(result))):
            return result
        # attention may drop some of its weights, and mostly does not
        if state is not None and not torch.equal(state, generator.get_state()):
            return result
        return self._with_roundings_moved(func, args, kwargs, result)

    def _with_roundings_moved(self, func: Any, args: Any, kwargs: Any, result: Any) -> Any:
        if func.namespace not in ("aten", "prims"):  # somebody's own, which may do more than compute
            return each_value(self._rounded_anew, result)
        if _rounds_at_its_beginning(func, args, kwargs, result):
            return self._moved_by_kernel(func, args, self._with_operands_moved(func, args, kwargs, result))
        wide = _wide_result(func, args, kwargs)
        is_promoted = func.overloadpacket in _KERNEL_ERRORS and not any(map(_is_floating, _tensors(args)))
        is_exact = not is_promoted and _is_exact(result, wide, args) and not _has_fractions(func, args)
        if is_exact and not _is_exact_by_chance(func, args, kwargs):
            return result
        if func.overloadpacket in _BY_DIFFERENCES:
            result = self._rounded_anew(result)
        elif torch.Tag.pointwise not in func.tags:
            result = self._with_operands_moved(func, args, kwargs, result)
        elif wide is not None:
            result = self._moved_by_loss(result, wide)
        else:
            result = self._rounded_anew(result)
        return self._moved_by_kernel(func, args, result)

    # ---- moves

    def _with_operands_moved(self, func: Any, args: Any, kwargs: Any, result: Any) -> Any:
        moved = func(*each_value(self._operand_mover(func, result), args), **kwargs)
        return each_value(self._rounded_anew, moved)

    def _noise(self, value: Tensor) -> Tensor:
        noise = torch.rand(value.shape, generator=self._generator, dtype=torch.float32) * 2 - 1
        return noise.to(value.device, value.dtype) * self._strength

    def _rounded_anew(self, value: Any) -> Any:
        """Moved by roundings of its own size; zeros stay."""
        if isinstance(value, Tensor) and value.is_complex():
            return torch.view_as_complex(self._rounded_anew(torch.view_as_real(value.resolve_conj()).contiguous()))
        if not _is_floating(value) or not value.numel():
            return value
        return _where_finite(value, value + value * self._noise(value) * torch.finfo(value.dtype).eps)

    def _operand_mover(self, func: Any, result: Any) -> Callable[[Any], Any]:
        """Moves all, but of products what is not far larger than the result: weights beside few values tell no more
        than these do.
        """
        if func.overloadpacket not in _WEIGHTED:
            return self._rounded_anew
        most = max(budgets.LARGEST_MOVED_OPERAND, *(4 * one.numel() for one in _tensors(result)))
        return lambda value: self._rounded_anew(value) if isinstance(value, Tensor) and value.numel() <= most else value

    def _moved_by_loss(self, result: Tensor, wide: Tensor) -> Tensor:
        """Each element that was rounded, by a rounding of its own size, or by what it lost where that is more."""
        if result.is_complex():
            parts = (torch.view_as_real(one.resolve_conj()).contiguous() for one in (result, wide))
            return torch.view_as_complex(self._moved_by_loss(*parts))
        loss = (result.to(wide.dtype) - wide).abs().to(result.dtype)
        size = torch.maximum(loss, result.abs() * torch.finfo(result.dtype).eps)
        return _where_finite(result, torch.where(loss == 0, result, result + size * self._noise(result)))

    def _moved_by_kernel(self, func: Any, args: Any, result: Any) -> Any:
        error = _KERNEL_ERRORS.get(func.overloadpacket)
        if error is None:
            return result
        first, *others = result if isinstance(result, tuple) else (result,)
        values = torch.view_as_real(first).contiguous() if first.is_complex() else first
        sizes = error(args, result) * (torch.finfo(values.dtype).eps / torch.finfo(torch.float32).eps)
        sizes = sizes.unsqueeze(-1) if first.is_complex() else sizes
        sign = torch.rand(values.shape, generator=self._generator).sub(0.5).sign().to(values.device, values.dtype)
        # a quarter, moved as many times as is allowed: a kernel's largest error is no typical one
        values = _where_finite(values, values + sign * sizes.to(values.dtype) * (self._strength / 4))
        first = torch.view_as_complex(values) if first.is_complex() else values
        return (first, *others) if isinstance(result, tuple) else first

    # ---- operators of their own kind

    def _run_in_place(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What an operator writes is moved where it stands."""
        before = each_value(lambda one: one.clone() if _is_floating(one) else one, args)
        result = func(*args, **kwargs)
        target = args[0] if args else None
        if target is not result or not _is_floating(target) or func.namespace != "aten":
            return result
        if _may_draw(func) or _is_never_rounded(func):
            return result
        wide = _wide_result(func, before, kwargs)
        moved = self._moved_by_loss(target, wide) if isinstance(wide, Tensor) else self._rounded_anew(target)
        target.copy_(self._moved_by_kernel(_IN_PLACE.get(func.overloadpacket, func), before, moved))
        return result

    def _in_another_order(self, func: Any, args: Any, kwargs: Any) -> Any:
        """PyTorch leaves the order of equal values open: the lowest index first, the highest first, or any."""

        def order(length: int) -> Tensor:
            if not self._seed % 2:
                return torch.arange(length)
            return (
                torch.arange(length).flip(0) if self._seed == 1 else torch.randperm(length, generator=self._generator)
            )

        return _equals_in_order(func, args, kwargs, order)


def jitter(seed: int, strength: float = 1.0) -> _Jitter:
    """Inside, every result that is rounded moves by up to so many roundings."""
    return _Jitter(seed, strength)


class LowestFirst(OperatorMode):
    """Inside nothing moves, but of equal values whose order PyTorch leaves open, the lowest index comes first, as ONNX
    has it: what was exactly equal stays so, and all that follows from the indices is what a right file gives.
    """

    def __init__(self) -> None:
        super().__init__()
        self.has_met_any = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        if func not in _OPEN_ORDERS or kwargs.get("stable"):
            return func(*args, **kwargs)
        self.has_met_any = True
        return _equals_in_order(func, args, kwargs, torch.arange)


# ---- which operators round


def _is_floating(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _tensors(value: Any) -> list[Tensor]:
    return [one for one in pytree.tree_leaves(value) if isinstance(one, Tensor)]


def _may_draw(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags


def _generator_of(args: Any, kwargs: Any) -> torch.Generator:
    given = (one for one in (*args, *kwargs.values()) if isinstance(one, torch.Generator))
    return next(given, torch.default_generator)


def _is_never_rounded(func: Any) -> bool:
    """What picks, puts in another place or chooses, or gives memory that nobody has written to yet."""
    if func in PICKS or func.overloadpacket in _EXACT:
        return True
    name: str = func.overloadpacket.__name__
    return name.removeprefix("new_").startswith(("empty", "resize", "set_"))


def _in_float64(value: Any) -> Any:
    if isinstance(value, Tensor):
        wide = torch.complex128 if value.is_complex() else torch.float64
        return value.to(wide, copy=True) if _is_floating(value) else value
    return torch.float64 if isinstance(value, torch.dtype) and value in BELOW_FLOAT64 else value


def _has_fractions(func: Any, args: Any) -> bool:
    """Whether a ramp starts or ends at one, or goes by them: float64 does not tell, since no tensor goes in."""
    numbers = [one for one in args if isinstance(one, float)]
    return func.overloadpacket in _RAMPS and not all(map(float.is_integer, numbers))


def _is_exact(result: Any, wide: Any, args: Any) -> bool:
    """Whether nothing was rounded; without float64, whether all that came out are numbers that went in."""
    if wide is not None:
        return all(map(_are_same, map(_in_float64, _tensors(result)), _tensors(wide)))
    operands = [one.flatten() for one in _tensors(args) if _is_floating(one)]
    known = torch.cat([one.to(torch.float64) for one in operands]) if operands else torch.zeros(0)
    return all(bool(torch.isin(one.to(known.dtype), known).all()) for one in _tensors(result) if _is_floating(one))


def _rounds_at_its_beginning(func: Any, args: Any, kwargs: Any, result: Any) -> bool:
    """Whether the first numbers of a product are seen to be rounded: then nobody computes all of it in float64."""
    place = _FIRST_FACTOR.get(func.overloadpacket)
    if place is None or len(args) < place + 2 or not result.numel():
        return False
    part, beginning = _beginning_of_product(func.overloadpacket, args, place, result)
    if result.numel() < 4 * beginning.numel():
        return False
    wide = _wide_result(func, part, kwargs)
    return wide is not None and not _is_exact(beginning, wide, part)


def _beginning_of_product(kind: Any, args: Any, place: int, result: Tensor) -> tuple[tuple[Any, ...], Tensor]:
    """What gives the first rows of a product, or images, and of each the first columns or channels; and these."""
    rows, columns = slice(_ROWS_LOOKED_AT), slice(_COLUMNS_LOOKED_AT)
    left, right = args[place][rows], args[place + 1]
    if kind is _aten.convolution:
        bias, *_, transposed, _, groups = args[2:]
        if transposed or groups > 1:
            return (left, *args[1:]), result[rows]
        return (left, right[columns], None if bias is None else bias[columns], *args[3:]), result[rows, columns]
    added = [one.expand(result.shape)[rows][..., columns] for one in args[:place]]
    right = right[rows] if kind in _BATCHED else right
    return (*added, left, right[..., columns]), result[rows][..., columns]


_ROWS_LOOKED_AT, _COLUMNS_LOOKED_AT = 2, 64


def _is_exact_by_chance(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether a sum would be rounded with other signs: one of few numbers may come out exact in PyTorch's order alone.
    What is a copy, a count or a choice is exact with any. Where all are positive, sums are largest, and rounded most.
    """
    if torch.Tag.pointwise in func.tags:
        return False
    for changed in (each_value(partial(_with_signs, seed=seed), args) for seed in range(budgets.OTHER_SIGNS)):
        wide = _wide_result(func, changed, kwargs)
        if wide is not None and not _is_exact(func(*changed, **kwargs), wide, changed):
            return True
    return False


def _with_signs(value: Any, seed: int) -> Any:
    """Other ones: all positive, or by chance."""
    if not _is_floating(value) or value.is_complex():
        return value
    signs = torch.randint(2, value.shape, generator=torch.Generator().manual_seed(seed)).to(value.device) * 2 - 1
    return torch.abs(value) * (1 if not seed else signs.to(value.dtype))


def _are_same(one: Tensor, other: Tensor) -> bool:
    """NaN at the same places included."""
    return torch.equal(one, other) or torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def _wide_result(func: Any, args: Any, kwargs: Any) -> Any:
    """The same in float64; None where that cannot be had, or would tell nothing."""
    tensors = [one for one in _tensors((args, kwargs)) if _is_floating(one)]
    if any(
        one.dtype in (torch.float64, torch.complex128) or one.numel() > budgets.LARGEST_CHECKED_OPERAND
        for one in tensors
    ):
        return None
    try:
        return func(*each_value(_in_float64, args), **each_value(_in_float64, kwargs))
    except Exception:  # noqa: BLE001  whatever a kernel refuses
        return None


def _where_finite(value: Tensor, moved: Tensor) -> Tensor:
    if math.isfinite(float(moved.sum())):  # most often: then all are, and to ask each takes longer than to move it
        return moved
    # an inf moved by a part of itself would be NaN, and the largest number an inf
    return torch.where(torch.isfinite(value) & torch.isfinite(moved), moved, value)


# ---- the order of equal values


def _equals_in_order(func: Any, args: Any, kwargs: Any, order_of: Callable[[int], Tensor]) -> Any:
    """The result of a sort or a choice in which equal values stand in this order of their indices."""
    value, dim, largest, (first, count), keepdim = _OPEN_ORDERS[func](func, args, kwargs)
    if value.dim() == 0:
        return func(*args, **kwargs)
    order = order_of(value.shape[dim]).to(value.device)
    values, places = value.index_select(dim, order).sort(dim=dim, descending=largest, stable=True)
    found = values.narrow(dim, first, count), order[places.narrow(dim, first, count)]
    return found if keepdim else tuple(one.squeeze(dim) for one in found)


_Choice = tuple[Tensor, int, bool, tuple[int, int], bool]
"""What is sorted, along which axis, whether the largest comes first, which are taken, whether the axis stays."""


def _sorted_wholly(func: Any, args: Any, kwargs: Any) -> _Choice:
    named = _named_arguments(func, args, kwargs)
    dim = named.get("dim", -1)
    return named["self"], dim, bool(named.get("descending", False)), (0, _length(named["self"], dim)), True


def _sorted_in_part(func: Any, args: Any, kwargs: Any) -> _Choice:
    named = _named_arguments(func, args, kwargs)
    return named["self"], named.get("dim", -1), bool(named.get("largest", True)), (0, named["k"]), True


def _one_of_sorted(func: Any, args: Any, kwargs: Any) -> _Choice:
    named = _named_arguments(func, args, kwargs)
    return named["self"], named.get("dim", -1), False, (named["k"] - 1, 1), bool(named.get("keepdim", False))


def _named_arguments(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    named = {one.name: value for one, value in zip(func._schema.arguments, args, strict=False)}
    return {**named, **kwargs}


def _length(value: Tensor, dim: int) -> int:
    return value.shape[dim] if value.dim() else 1


_OPEN_ORDERS = {
    _aten.sort.default: _sorted_wholly, _aten.sort.stable: _sorted_wholly, _aten.topk.default: _sorted_in_part,
    _aten.kthvalue.default: _one_of_sorted,
}  # fmt: skip


# ---- kernels of the runtime that lose more than a rounding


def _constant(error: float) -> Callable[[Any, Any], Tensor]:
    return lambda _args, result: torch.full_like(result, error)


def _times_input(error: float) -> Callable[[Any, Any], Tensor]:
    return lambda args, _result: torch.abs(args[0]) * error


def _error_of_gate(args: Any, _result: Any) -> Tensor:
    value, *dim = args
    return torch.abs(value.chunk(2, *(dim or (-1,)))[0]) * 1.25e-7


def _error_of_resize(args: Any, result: Any) -> Tensor:
    """The weights of neighbours come from a place along the axis, which is rounded as a whole."""
    value: Tensor = args[0]
    axes = range(2, value.dim())
    largest = torch.abs(value).amax(tuple(axes), keepdim=True)
    longest: int = max(value.shape[axis] for axis in axes)
    return (largest * 6e-8 * longest).expand(result.shape)


def _error_of_ramp(_args: Any, result: Any) -> Tensor:
    """Steps are added to the start: where they cross zero, most of both cancels."""
    return torch.full_like(result, 1.25e-7 * float(torch.abs(result).max()))


def _error_of_sum(operator: Any) -> Callable[[Any, Any], Tensor]:
    """Thousands of operands that are moved each hide each other's moves. A sum from the first to the last, whose steps
    are rounded one by one, loses a part of a rounding of all that is summed, however much of it cancels.
    """
    return lambda args, _result: operator(torch.abs(args[0]), *args[1:]) * 6e-8


def _error_of_running_sum(args: Any, result: Any) -> Tensor:
    """Besides, what is lost when each step is rounded in the type itself, as the runtime does: PyTorch sums in a wider
    one. Steps that are alike are rounded to the same side, thousands of times.
    """
    value, dim, *_ = args
    least = _error_of_sum(_aten.cumsum)(args, result)
    if value.is_complex():
        return least
    in_steps = np.cumsum(value.detach().cpu().to(torch.float32).numpy(), axis=dim, dtype=np.float32)
    lost = torch.abs(torch.from_numpy(in_steps).to(result.device, result.dtype).reshape(result.shape) - result)
    return torch.maximum(least, lost)


def _error_of_transform(args: Any, _result: Any) -> Tensor:
    """Of a sum of all, whatever cancels in it: the imaginary part of the first number is exactly zero in PyTorch."""
    value, dims, normalization, *_ = args
    total: Tensor = torch.abs(value).sum(dims, keepdim=True)
    count: int = math.prod(value.shape[dim] for dim in dims)
    return total * (1.25e-7 / math.pow(count, normalization / 2))


def _error_of_step(args: Any, result: Any) -> Tensor:
    """Of a product that is added in one go, without a rounding between, whatever it cancels."""
    return torch.abs(result - args[0]) * 1.25e-7


def _error_of_norm(args: Any, result: Any) -> Tensor:
    """The mean is rounded as a sum is, and taken off."""
    value, mean, scale = result
    ratio: Tensor = torch.abs(mean * scale) * 2.5e-7
    if isinstance(args[1], list | tuple):  # the axes of a layer
        return ratio
    return ratio.unsqueeze(-1).expand(*mean.shape, value.numel() // max(mean.numel(), 1)).reshape(value.shape)


def _private(*names: str) -> list[Any]:
    """Operators by names that torch may change."""
    return [found for name in names if (found := lookup(f"torch.ops.aten.{name}")) is not None]


_BY_DIFFERENCES = _private("_softmax", "_log_softmax")
"""What differences of operands decide, which are made once: a mask of -3e38 moved by roundings would be no mask."""
_WEIGHTED = (
    _aten.mm, _aten.addmm, _aten.bmm, _aten.baddbmm, _aten.addbmm, _aten.mv, _aten.addmv, _aten.dot, _aten.linear,
    _aten.convolution, *_private("_embedding_bag", "_embedding_bag_forward_only"),
)  # fmt: skip
"""Values beside weights, which may be many more."""
_FIRST_FACTOR = {_aten.mm: 0, _aten.bmm: 0, _aten.addmm: 1, _aten.baddbmm: 1, _aten.convolution: 0}
"""Of products that have a row, or an image, for each of its own."""
_BATCHED = (_aten.bmm, _aten.baddbmm)
_EXACT = (
    _aten.cat, _aten.stack, _aten.clone, _aten.repeat, _aten.roll, _aten.flip, _aten.constant_pad_nd, _aten.tril,
    _aten.triu, _aten.select_scatter, _aten.slice_scatter, _aten.upsample_nearest1d, _aten.upsample_nearest2d,
    _aten.where, _aten.masked_fill, _aten.relu, _aten.neg, _aten.abs, _aten.maximum, _aten.minimum, _aten.amax,
    _aten.amin, _aten.max_pool2d_with_indices, _aten.zeros, _aten.ones, _aten.zeros_like, _aten.ones_like,
    _aten.new_zeros, _aten.new_ones, *_private("_unsafe_view", "_reshape_copy"),
)  # fmt: skip
_SUMS = (
    _aten.sum, _aten.mean, _aten.avg_pool1d, _aten.avg_pool2d, _aten.avg_pool3d,
    *_private("_adaptive_avg_pool2d", "_adaptive_avg_pool3d"),
)  # fmt: skip
_RAMPS = (_aten.arange, _aten.linspace)
_RESIZES = (
    _aten.upsample_linear1d, _aten.upsample_bilinear2d, _aten.upsample_trilinear3d, _aten.upsample_bicubic2d,
    _aten.grid_sampler_2d, _aten.grid_sampler_3d, *_private("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
)  # fmt: skip
_COLUMNS_OF_A_BLOCK, _STEPS_OF_A_BLOCK, _FEWEST_COLUMNS = 128, 128, 16


def _error_of_product(args: Any, result: Any) -> Tensor:
    """The runtime adds up step by step inside of a block, which is the longer the fewer columns a product has: of 16 a
    thousand steps lose five times what those of 128 do. Measured for terms of one sign and of both.
    """
    left, right = args[-2:]  # before them, what is added
    columns = max(_FEWEST_COLUMNS, 2 ** math.ceil(math.log2(max(right.shape[-1], 1))))
    steps = min(left.shape[-1], _STEPS_OF_A_BLOCK * _COLUMNS_OF_A_BLOCK // columns)
    if steps <= _STEPS_OF_A_BLOCK:
        return torch.zeros(())
    terms = torch.matmul(left.square(), right.square()).sqrt()
    return torch.maximum(terms, result.abs()) * (0.35 * math.sqrt(steps) * torch.finfo(torch.float32).eps)


# Measured on 320,000 numbers from -90 to 90 each: all other kernels of ONNX Runtime's lose less than four roundings of
# the result. Its sigmoid is a quotient of polynomials, and 1 is taken off, or added, where PyTorch has another formula.
_KERNEL_ERRORS: dict[Any, Callable[[Any, Any], Tensor]] = {
    _aten.sigmoid: _constant(1.25e-7),
    _aten.silu: _times_input(1.25e-7),
    _aten.glu: _error_of_gate,
    _aten.elu: _constant(6e-8),
    _aten.celu: _constant(6e-8),
    _aten.expm1: _constant(6e-8),
    _aten.log1p: _constant(6e-8),
    _aten.erfc: _constant(6e-8),
    # terms that cancel at their zeros: at 1 and 2 PyTorch's logarithm of the gamma function is exactly none
    _aten.lgamma: _constant(6e-8),
    _aten.digamma: _constant(6e-8),
    _aten.gelu: _times_input(6e-8),
    _aten.hardsigmoid: _constant(6e-8),
    _aten.hardswish: _times_input(6e-8),
    _aten.logsumexp: _constant(1.25e-7),
    _aten.logcumsumexp: _constant(1.25e-7),
    **dict.fromkeys(_private("_log_softmax"), _constant(1.25e-7)),
    **dict.fromkeys(_RESIZES, _error_of_resize),
    **dict.fromkeys(_RAMPS, _error_of_ramp),
    **dict.fromkeys(_private("_fft_r2c", "_fft_c2c", "_fft_c2r"), _error_of_transform),
    **{operator: _error_of_sum(operator) for operator in _SUMS},
    _aten.cumsum: _error_of_running_sum,
    **dict.fromkeys((_aten.addcmul, _aten.addcdiv, _aten.lerp), _error_of_step),
    _aten.native_layer_norm: _error_of_norm,
    _aten.native_group_norm: _error_of_norm,
    **dict.fromkeys((_aten.mm, _aten.bmm, _aten.addmm, _aten.baddbmm), _error_of_product),
}
_IN_PLACE = {
    _aten.sigmoid_: _aten.sigmoid.default, _aten.silu_: _aten.silu.default, _aten.elu_: _aten.elu.default,
    _aten.addcmul_: _aten.addcmul.default, _aten.addcdiv_: _aten.addcdiv.default, _aten.lerp_: _aten.lerp.Scalar,
}  # fmt: skip
