"""Calls that PyTorch runs unchecked, and does not define, raise instead: a size that is tried may be an accident.

`scaled_dot_product_attention` takes keys and values of two lengths and reads beyond the end of the shorter ones: what
it gives then changes from call to call, and may end the process.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from anyshape.torchkit.operator_mode import OperatorMode
from anyshape.torchkit.patches import patched


class UndefinedCallError(RuntimeError):
    """A call whose result PyTorch does not define."""


def _check_attention(_query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> None:
    if key.dim() > 1 and value.dim() > 1 and key.shape[-2] != value.shape[-2]:
        lengths = f"{key.shape[-2]} keys and {value.shape[-2]} values"
        raise UndefinedCallError(f"scaled_dot_product_attention has {lengths}: PyTorch reads beyond the shorter ones")


_CHECKS: Mapping[str, Callable[..., None]] = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": _check_attention,
    "aten::_scaled_dot_product_attention_math": _check_attention,
    "aten::_scaled_dot_product_flash_attention": _check_attention,
    "aten::_scaled_dot_product_efficient_attention": _check_attention,
    "aten::_scaled_dot_product_fused_attention_overrideable": _check_attention,
}
"""By the operator's name: what raises where a call is not defined."""


class DefinedCalls(OperatorMode):
    """Inside, every such call raises, however it was reached: for probes, whose sizes need not fit each other."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        check = _CHECKS.get(func.name().partition(".")[0])
        if check is not None:
            check(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def attention_is_checked() -> Iterator[None]:
    """Inside, calls by the function's own name are checked, at no cost for all others: for the many runs of a check."""
    plain = torch.nn.functional.scaled_dot_product_attention

    @functools.wraps(plain)
    def checked(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        _check_attention(query, key, value)
        return plain(query, key, value, *args, **kwargs)

    with patched(torch.nn.functional, "scaled_dot_product_attention", checked):
        yield
