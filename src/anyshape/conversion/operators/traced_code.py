"""A function with a gradient of its own is traced through its forward.

Recognised: `apply` of any `torch.autograd.Function`. Put there: its `forward`, on a context that keeps what it is
given. The same, because a result has nothing to do with the backward pass. torch traces most of these functions as they
are, but not below `torch.vmap`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.autograd.function import Function, FunctionCtx

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.torchkit.patches import patched


@contextlib.contextmanager
def _traced_through_forward(used: Used) -> Iterator[None]:
    def apply(function: type[Function], *args: Any, **kwargs: Any) -> Any:
        used(f"{function.__name__}: traced through its forward")
        if function.setup_context is not Function.setup_context:
            return function.forward(*args, **kwargs)
        return function.forward(_context(args), *args, **kwargs)

    with patched(Function, "apply", classmethod(apply)):
        yield


def _context(args: tuple[Any, ...]) -> Any:
    context: Any = FunctionCtx()
    context.needs_input_grad = tuple(isinstance(value, torch.Tensor) and value.requires_grad for value in args)
    return context


AUTOGRAD_FUNCTIONS = Repair("autograd functions", _traced_through_forward)
