"""`dtype=`: a copy of the module in another type, and its calls with it."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from anyshape.declaration.calls import Signature, bind_call, read_call
from anyshape.declaration.targets import Target, resolve_target
from anyshape.errors import DeclarationError, first_line


def as_dtype(dtype: Any) -> torch.dtype:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise DeclarationError(f"dtype is {dtype!r}: give a floating type such as torch.float16 or 'bfloat16'")
    return found


def converted(target: Target, dtype: torch.dtype) -> Target:
    """A copy of the module in another type; the user's own is not touched."""
    if target.call is not target.module and not inspect.ismethod(target.call):
        raise DeclarationError("dtype= converts a module or its method, not a function")
    try:
        twin = copy.deepcopy(target.module).to(dtype)
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise DeclarationError(f"dtype= needs a copy of the model, which cannot be copied ({reason})") from error
    return resolve_target(twin if target.call is target.module else getattr(twin, str(target.call.__name__)))


def casting(make_inputs: Callable[..., Any], target: Target, dtype: torch.dtype) -> Callable[..., Any]:
    @functools.wraps(make_inputs)
    def cast_inputs(*args: Any, **kwargs: Any) -> dict[str, Any]:
        made, keywords = cast(bind_call(target, *read_call(make_inputs(*args, **kwargs))), dtype).build({})
        return {"args": made, "kwargs": keywords}

    return cast_inputs


def cast(signature: Signature, dtype: torch.dtype) -> Signature:
    leaves = tuple(
        type(leaf)(leaf.name, leaf.value.to(dtype)) if leaf.is_tensor and leaf.value.is_floating_point() else leaf
        for leaf in signature.leaves
    )
    return Signature(leaves, signature.positional, signature.keywords)
