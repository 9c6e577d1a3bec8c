"""Whole numbers that tensors without axes hold: a trace knows the shape of a tensor alone, here the value is kept.

A value comes from a buffer, from a literal or from a size. It lasts until the tensor is written to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from anyshape.torchkit.patches import patched

_WHOLE = (torch.int64, torch.int32)
Call = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]


class Held:
    """The values of some tensors, as far as they are known."""

    def __init__(self) -> None:
        self._values: Any = WeakIdKeyDictionary()

    def keep(self, tensor: Tensor, value: Any) -> None:
        self._values[tensor] = (tensor._version, value)

    def value_of(self, tensor: Tensor) -> Any:
        """None where it is not known."""
        version, value = self._values.get(tensor, (None, None))
        if value is not None:
            return value if version == tensor._version else None
        literal = getattr(tensor, "constant", None)
        return int(literal) if isinstance(literal, Tensor) and _is_whole_number(literal) else None


def _is_whole_number(tensor: Tensor) -> bool:
    return tensor.ndim == 0 and tensor.dtype in _WHOLE


@contextlib.contextmanager
def buffers_held(held: Held) -> Iterator[None]:
    """Inside, torch's stand-ins for buffers that are one whole number are known by their values."""
    trace = getattr(torch.export, "_trace", None)
    original = getattr(trace, "_fakify_params_buffers", None)
    if original is None:
        yield
        return

    def fakify(mode: Any, module: torch.nn.Module) -> Any:
        fakes = original(mode, module)
        for name, buffer in module.named_buffers(remove_duplicate=False):
            if name in fakes and _is_whole_number(buffer):
                held.keep(fakes[name], int(buffer))
        return fakes

    with patched(trace, "_fakify_params_buffers", fakify):
        yield


class Calling(TorchFunctionMode):
    """Every call of a torch function goes through one function."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        return self._call(func, args, kwargs or {})
