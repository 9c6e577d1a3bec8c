"""Running a module in wider arithmetic.

It is a dispatch mode, so the module's own code runs unchanged. Operators that compare the types of their arguments
before they are dispatched (convolutions) need wide parameters, too: these are lent for the time of a run; where a
second copy of all would hurt, those of one part for the time of its call.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from anyshape.sizes import budgets
from anyshape.torchkit.operator_mode import OperatorMode
from anyshape.torchkit.private_names import lookup, pytree
from anyshape.torchkit.schemas import is_view, writes

BELOW_FLOAT64 = (torch.float16, torch.bfloat16, torch.float32)


class _Upcast(OperatorMode):
    """Every operator computes in `wide`, from the first to the last."""

    def __init__(self, narrow: tuple[torch.dtype, ...], wide: torch.dtype, *, sparing: bool) -> None:
        super().__init__()
        self._narrow, self._wide, self._sparing = narrow, wide, sparing
        self._default = torch.get_default_dtype()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()) and not any(map(torch.is_tensor, args)):
            return each_value(self._widen, func(*args, **self._own_type(func, kwargs or {})))
        if self._sparing and (spared := run_sparingly(func, args, kwargs or {}, self._widen)) is not NotImplemented:
            return spared
        wide_args, wide_kwargs = each_value(self._widen, args), each_value(self._widen, kwargs or {})
        result = func(*wide_args, **wide_kwargs)
        if writes(func):
            self._write_back(args, wide_args)
        return each_value(self._widen, result)

    def _own_type(self, func: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The type that random numbers are drawn in without this mode: in a wide one they would be others."""
        unset = any(one.name == "dtype" and one.default_value is None for one in func._schema.arguments)
        return {**kwargs, "dtype": kwargs.get("dtype") or self._default} if unset else kwargs

    def _widen(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.dtype == torch.complex64 and self._wide == torch.float64:
                return value.to(torch.complex128)
            return value.to(self._wide) if value.dtype in self._narrow else value
        return self._wide if isinstance(value, torch.dtype) and value in self._narrow else value

    def _write_back(self, narrow: Any, wide: Any) -> None:
        """An operator that writes in place wrote to the wide copy: the caller's tensor must see it."""
        for old, new in zip(pytree.tree_leaves(narrow), pytree.tree_leaves(wide), strict=True):
            if isinstance(old, torch.Tensor) and old is not new:
                old.copy_(new)


def each_value(function: Callable[[Any], Any], value: Any) -> Any:
    """`pytree.tree_map` for what operators take and give: asked for every one of them, it took most of the time."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([each_value(function, one) for one in value])
    if kind is dict:
        return {key: each_value(function, one) for key, one in value.items()}
    if isinstance(value, tuple):  # with names
        return pytree.tree_map(function, value)
    return function(value)


_WITHOUT_MODES = "torch.utils._python_dispatch._disable_current_modes"


class WideCopies:
    """Wide copies of parameters, kept from one run to the next: to make them takes as long as to compute with them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, torch.dtype], tuple[tuple[Any, ...], torch.Tensor]] = {}

    def of(self, parameter: torch.Tensor, wide: torch.dtype) -> torch.Tensor:
        # who writes to what was lent writes to the parameter: its version moves on, and the copy is made anew
        now = parameter, parameter._version, parameter.data_ptr()
        then, copy = self._kept.get((id(parameter), wide), ((None, 0, 0), parameter))
        if then[0] is not parameter or then[1:] != now[1:]:
            copy = parameter.data.to(wide)
            self._kept[id(parameter), wide] = now, copy
        return copy


class _Lender:
    """Gives parts of a module wide copies of their parameters and buffers, and their own storage back."""

    def __init__(
        self, narrow: tuple[torch.dtype, ...], wide: torch.dtype, copies: WideCopies | None, *, sparing: bool
    ) -> None:
        self._narrow, self._wide, self._copies, self.sparing = narrow, wide, copies, sparing
        self._lent: dict[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        self._aside: dict[nn.Module, list[tuple[str, torch.Tensor]]] = {}

    def lend(self, part: nn.Module) -> None:
        if part in self._lent:
            return
        parameters = [p for p in part.parameters(recurse=False) if self._takes(part, p) and not p.is_inference()]
        self._lent[part] = [(parameter, parameter.data) for parameter in parameters]
        for parameter in parameters:
            kept = self._copies
            parameter.data = parameter.data.to(self._wide) if kept is None else kept.of(parameter, self._wide)
        if not self.sparing:  # what a part writes to them must last from one of its calls to the next
            self._aside[part] = [(n, b) for n, b in part.named_buffers(recurse=False) if b.dtype in self._narrow]
            part._buffers.update({name: buffer.to(self._wide) for name, buffer in self._aside[part]})

    def _takes(self, part: nn.Module, tensor: torch.Tensor) -> bool:
        """Large ones are widened by the operators that compute with them; recurrent layers compare types before."""
        if self.sparing and is_large(tensor) and not isinstance(part, nn.RNNBase):
            return False
        return tensor.dtype in self._narrow

    def take_back(self, part: nn.Module) -> None:
        for parameter, data in self._lent.pop(part, ()):
            parameter.data = data
        for name, buffer in self._aside.pop(part, ()):
            part._buffers[name] = buffer

    def take_all_back(self) -> None:
        for part in reversed(list(self._lent)):  # a tensor that two parts share was its own before the first
            self.take_back(part)


@contextlib.contextmanager
def _lent_parameters(module: nn.Module, lender: _Lender) -> Iterator[None]:
    """Inside, the module's parameters and buffers hold wide copies; afterwards their own storage again."""
    try:
        if lender.sparing:
            with _at_calls_of(set(module.modules()), lender):
                yield
        else:
            for part in module.modules():
                lender.lend(part)
            yield
    finally:
        lender.take_all_back()


@contextlib.contextmanager
def _at_calls_of(parts: set[nn.Module], lender: _Lender) -> Iterator[None]:
    """A part has wide copies while its `forward` runs. Hooks of its own would switch off torch's fast paths."""
    hooks, without_modes = nn.modules.module, lookup(_WITHOUT_MODES)

    def lend(part: nn.Module, *_: Any) -> None:
        if part in parts:
            with without_modes():  # to `_Upcast`, a parameter's own storage would be something to widen
                lender.lend(part)

    def take_back(part: nn.Module, *_: Any) -> None:
        with without_modes():
            lender.take_back(part)

    before = hooks.register_module_forward_pre_hook(lend)
    after = hooks.register_module_forward_hook(take_back, always_call=True)
    try:
        yield
    finally:
        before.remove()
        after.remove()


@contextlib.contextmanager
def without_whole_layers() -> Iterator[None]:
    """Inside, recurrent layers are computed step by step: mkldnn's kernels know float32 alone, and hide their gates."""
    # switching it off warns about hardware that nobody asked for
    with warnings.catch_warnings(action="ignore"), torch.backends.mkldnn.flags(enabled=False):
        yield


@contextlib.contextmanager
def computing_in(dtype: torch.dtype, module: nn.Module, copies: WideCopies | None = None) -> Iterator[_Upcast]:
    """Inside, everything of this module below `dtype` is computed in `dtype`; few copies are kept for the next time."""
    narrow = tuple(d for d in BELOW_FLOAT64 if torch.finfo(d).bits < torch.finfo(dtype).bits)
    default = torch.get_default_dtype()
    held = sum(t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers()) if t.dtype in narrow)
    sparing = held > budgets.LARGEST_WIDE_COPY and lookup(_WITHOUT_MODES) is not None
    mode = _Upcast(narrow, dtype, sparing=sparing)
    lender = _Lender(narrow, dtype, copies if held <= budgets.LARGEST_KEPT_COPY else None, sparing=sparing)
    with without_whole_layers(), _lent_parameters(module, lender):
        torch.set_default_dtype(dtype)
        try:
            with mode:
                yield mode
        finally:
            torch.set_default_dtype(default)


# ---- operators on large tensors, without a wide copy of them

_aten = torch.ops.aten
PICKS = (
    _aten.embedding.default, _aten.index.Tensor, _aten.index_select.default, _aten.gather.default, _aten.take.default,
)  # fmt: skip
"""They pick numbers of their first argument and compute none."""
_PADDING_OF_BAGS = 8
"""The place of the row that a bag leaves out, counted from 0."""

Widen = Callable[[Any], Any]


def is_large(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() * value.element_size() > budgets.LARGE_OPERAND


def run_sparingly(func: Any, args: Any, kwargs: Any, widen: Widen) -> Any:
    """The wide result of an operator without a wide copy of its large tensors; NotImplemented where it needs one.

    What is only looked at in another way stays narrow until somebody computes with it.
    """
    if func in PICKS:
        return widen(func(*args, **kwargs))
    if not any(map(is_large, args)):
        return NotImplemented
    if is_view(func):
        return func(*args, **kwargs)
    run = _SPARING.get(func)
    return NotImplemented if run is None else run(func, args, kwargs, widen)


def _sum_of_rows(func: Any, args: Any, kwargs: Any, widen: Widen) -> Any:
    """Sums of rows: those that occur make a table of their own."""
    table, indices, *others = args
    if len(args) > _PADDING_OF_BAGS and args[_PADDING_OF_BAGS] >= 0:
        return NotImplemented
    rows, places = indices.unique(return_inverse=True)
    return func(widen(table.index_select(0, rows)), places, *map(widen, others), **kwargs)


def _wide_mm(_func: Any, args: Any, _kwargs: Any, widen: Widen) -> Any:
    return _product(args[0], args[1], widen)


def _wide_addmm(_func: Any, args: Any, kwargs: Any, widen: Widen) -> Any:
    product = _product(args[1], args[2], widen)
    return widen(args[0]) * kwargs.get("beta", 1) + product * kwargs.get("alpha", 1)


def _product(left: torch.Tensor, right: torch.Tensor, widen: Widen) -> torch.Tensor:
    """A matrix product, with the large matrix widened in blocks: columns on the right, rows on the left."""
    if not is_large(right):
        return _product(right.t(), left.t(), widen).t()
    left = widen(left)
    length, count = right.shape
    product = left.new_empty(left.shape[0], count)
    buffer = left.new_empty(max(budgets.BYTES_OF_A_BLOCK // left.element_size(), length))
    step = buffer.numel() // max(length, 1)
    for start in range(0, count, step):
        block = right[:, start : start + step]
        wide = buffer[: block.numel()].view(block.shape[1], length).t()
        product[:, start : start + step] = left @ wide.copy_(block)
    return product


def _wide_convolution(func: Any, args: Any, _kwargs: Any, widen: Widen) -> Any:
    """Some channels of the result at a time."""
    images, weight, bias, *how, groups = args
    is_transposed = how[3]
    if is_transposed or groups > 1 or not is_large(weight):
        return NotImplemented
    images = widen(images)
    step = max(budgets.BYTES_OF_A_BLOCK // (images.element_size() * weight[0].numel()), 1)
    blocks = [(weight[i : i + step], None if bias is None else bias[i : i + step]) for i in range(0, len(weight), step)]
    return torch.cat([func(images, *map(widen, block), *how, groups) for block in blocks], dim=1)


_BAGS = [lookup(f"torch.ops.aten.{name}") for name in ("_embedding_bag", "_embedding_bag_forward_only")]
_SPARING: dict[Any, Callable[[Any, Any, Any, Widen], Any]] = {
    **{bag.default: _sum_of_rows for bag in _BAGS if bag is not None},
    _aten.mm.default: _wide_mm,
    _aten.addmm.default: _wide_addmm,
    _aten.convolution.default: _wide_convolution,
}
