"""Code that does more than compute a result: gradients of its own, gradients switched on, modules moved in forward.

Only the result is traced. It does not depend on whether, or how, it could be differentiated.
"""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.autograd.function import Function, FunctionCtx

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.torchkit.patches import gradients_kept_off, patched

# ---- a function with a gradient of its own

# Recognised: `apply` of any `torch.autograd.Function`. Put there: its `forward`, on a context that keeps what it is
# given. torch traces most of these functions as they are, but not below `torch.vmap`.


def _traced_through_forward(used: Used) -> AbstractContextManager[None]:
    def apply(function: type[Function], *args: Any, **kwargs: Any) -> Any:
        used(f"{function.__name__}: traced through its forward")
        if function.setup_context is not Function.setup_context:
            return function.forward(*args, **kwargs)
        return function.forward(_context_for(args), *args, **kwargs)

    return patched(Function, "apply", classmethod(apply))


def _context_for(args: tuple[Any, ...]) -> Any:
    context: Any = FunctionCtx()
    context.needs_input_grad = tuple(isinstance(value, torch.Tensor) and value.requires_grad for value in args)
    return context


AUTOGRAD_FUNCTIONS = Repair("autograd functions", _traced_through_forward)


# ---- a part of a forward that switches gradients on

# Recognised: `torch.enable_grad()` and `torch.set_grad_enabled(True)`. Put there: nothing, so that the trace goes on
# without gradients; a forward that takes a gradient itself fails then, and is left to others. torch keeps such a part
# as an inner program, which its translation cannot write.


GRADIENTS = Repair(
    "gradients", lambda used: gradients_kept_off(lambda: used("torch.enable_grad: traced without gradients"))
)


# ---- `self.head.to(x.dtype)` in forward: a module that is already so is left alone

# Torch would exchange its parameters for others, which a trace does not allow.


def _is_already(module: nn.Module, wanted: tuple[Any, ...]) -> bool:
    tensors = list(itertools.chain(module.parameters(), module.buffers()))
    dtypes = [one for one in wanted if isinstance(one, torch.dtype)]
    devices = [torch.device(one) for one in wanted if isinstance(one, (str, torch.device))]
    if len(dtypes) + len(devices) != len(wanted):
        return False
    floating = [tensor for tensor in tensors if tensor.is_floating_point()]
    return all(t.dtype in dtypes for t in floating if dtypes) and all(t.device in devices for t in tensors if devices)


def _modules_left_in_place(used: Used) -> AbstractContextManager[None]:
    original = nn.Module.to

    def to(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        named = [value for name, value in kwargs.items() if name in ("dtype", "device") and value is not None]
        if len(named) == len(kwargs) and _is_already(self, (*args, *named)):
            used(f"{type(self).__name__}.to() in forward: left as it is, since it is so already")
            return self
        return original(self, *args, **kwargs)

    return patched(nn.Module, "to", to)


# always right, and without it such a model is never traced
MOVED_MODULES = Repair("modules moved in forward", _modules_left_in_place, always=True)
